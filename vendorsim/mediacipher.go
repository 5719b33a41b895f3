package vendorsim

// macSize is how many bytes of the HMAC end an encrypted file.
const macSize = 10
