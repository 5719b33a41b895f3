package postern

// The places for which values are encrypted. A value opens only in its own place, so the text of a place
// never changes. A new place needs a line among the columns of package secretkey, by which its values are
// encrypted again when the secret key is rotated.

// HeadersPlace is the place for which the endpoint's own headers are encrypted.
func (id EndpointID) HeadersPlace() string { return "endpoint.headers " + string(id) }

// SigningKeyPlace is the place for which the endpoint's ed25519 key is encrypted.
func (id EndpointID) SigningKeyPlace() string { return "endpoint.signing_key " + string(id) }

// SecretPlace is the place for which the gateway encrypts the endpoint's signing secret,
// and for which the dispatcher opens it.
func (id EndpointID) SecretPlace() string { return "endpoint.secret " + string(id) }

// ProxyPlace is the place for which the device's proxy is encrypted.
func (id DeviceID) ProxyPlace() string { return "device.proxy " + string(id) }

// CodePlace is the place for which the code of a link attempt is encrypted.
func (id LinkID) CodePlace() string { return "link.code " + string(id) }

// SourcePlace is the place for which is encrypted where a file is fetched, and what the network knows of it.
func (id MediaID) SourcePlace() string { return "media " + string(id) }

// AppPlace is the place for which the secret of the user's authenticator app is encrypted.
func (id UserID) AppPlace() string { return "totp " + string(id) }

// PasskeyPlace is the place for which a passkey of the user is encrypted.
func (id UserID) PasskeyPlace() string { return "passkey " + string(id) }

// AnswerPlace is the place for which the response to an idempotent request is encrypted.
func (id WorkspaceID) AnswerPlace(method, path, key string) string {
	return "idempotency.answer " + string(id) + " " + method + " " + path + " " + key
}

// SessionKeyPlace is the place for which a key of an account is encrypted.
func SessionKeyPlace(account, kind, name string) string {
	return "session_key " + account + " " + kind + " " + name
}
