package passkey

import (
	"archive/zip"
	"embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"path"

	"postern/internal/postern"
)

// Page is the network's page on which browsers use its passkeys.
const Page = "https://web.whatsapp.com/"

// extension is the browser extension, whose sources are in the directory extension: "make extension" writes it.
//
//go:embed extension
var extension embed.FS

// WriteExtension writes the browser extension as a zip file.
func WriteExtension(to io.Writer) error {
	w := zip.NewWriter(to)
	files, err := extension.ReadDir("extension")
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := extension.ReadFile(path.Join("extension", f.Name()))
		if err != nil {
			return err
		}
		part, err := w.CreateHeader(&zip.FileHeader{Name: f.Name(), Method: zip.Deflate})
		if err != nil {
			return err
		}
		if _, err := part.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}

// ceremony is what the extension does on the network's page, and what people may paste there.
func ceremony() string {
	text, err := extension.ReadFile("extension/ceremony.js")
	if err != nil {
		panic(err) // cannot happen: it is part of the program
	}
	return string(text)
}

// Handover leads the browser of an owner to the network's page, and back with the credential.
type Handover struct {
	PublicKey postern.PasskeyOptions `json:"publicKey"`
	Back      string                 `json:"back"` // the page that gets the credential, in its fragment
	Name      string                 `json:"name"` // who links the account
}

// Address is the network's page, with the request for the extension in its fragment, which browsers send to nobody.
func (h Handover) Address() string {
	return Page + "#postern=" + base64.RawURLEncoding.EncodeToString(h.json())
}

// Snippet is what the extension does, as text for the console of the network's page.
func (h Handover) Snippet() string {
	return "(() => {\n" + ceremony() + "posternPasskey(" + string(h.json()) + ");\n})();\n"
}

// json has no character that ends a script: it escapes <, > and &.
func (h Handover) json() []byte {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // cannot happen: the options have come from JSON
	}
	return text
}
