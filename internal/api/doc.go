// Package api is the REST API under /v1: it decodes and authorises requests,
// asks the gateway, and encodes answers. It decides nothing else.
//
// A request passes, in this order: request id, route, key, plan, scopes, rate
// limit, accepted types, query, body, and then the handler of its operation.
// Whatever refuses it answers with a problem document (RFC 9457) that never
// repeats a value the caller sent; the pointers of a 422 name its members.
package api
