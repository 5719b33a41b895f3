// Draws the reference. Nothing is asked of another host: no fonts, no
// telemetry, no proxy, no agent.
Scalar.createApiReference('#reference', {
  url: '/v1/openapi.json',
  agent: { disabled: true },
  authentication: { preferredSecurityScheme: 'bearer' },
  hideClientButton: true,
  mcp: { disabled: true },
  persistAuth: false,
  showDeveloperTools: 'never',
  telemetry: false,
  withDefaultFonts: false,
})
