package vendorsim

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waMmsRetry"
	"google.golang.org/protobuf/proto"
)

const (
	// retryLabel is the label of the keys of requests for a file and of their answers.
	retryLabel = "WhatsApp Media Retry Notification"
	// goneFromPhone is the code with which a phone answers that it no longer has a file.
	goneFromPhone = 2
	kindRetry     = "mediaretry"
)

// handle lets the own phone of a companion upload the file of a message again, for which the
// companion asks with a receipt, and answers the companion with a notification.
func (v reuploads) handle(cp *companion, n *waBinary.Node) {
	m, silent := v.wanted(cp, n)
	if silent {
		return
	}
	answer := waBinary.Node{Tag: "error", Attrs: waBinary.Attrs{"code": goneFromPhone}}
	if m.Media != nil {
		answer = v.again(cp.account.number, m, n, answer)
	}
	id, rmr := attr(n, "id"), n.GetChildByTag("rmr")
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.deliver(cp, &delivery{Class: classNotification, ID: id, Kind: kindRetry, Node: encodeNode(waBinary.Node{
		Tag: classNotification,
		Attrs: waBinary.Attrs{
			"from": cp.account.number.pn(), "type": kindRetry, "id": id, "t": time.Now().Unix(),
		},
		Content: []waBinary.Node{{Tag: "rmr", Attrs: rmr.Attrs}, answer},
	})})
}

// wanted returns the message whose file a request asks for, without a file if the phone does not
// have it. silent is true for a phone that does not answer.
func (v reuploads) wanted(cp *companion, n *waBinary.Node) (m Shown, silent bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	own, rmr := cp.account.number, n.GetChildByTag("rmr")
	found := v.records.shown(own, attr(n, "id"))
	if v.faults.takeFault(cp.account, FaultMediaSilent) {
		return Shown{}, true
	}
	if found == nil || !named(rmr, own, found) || v.faults.takeFault(cp.account, FaultMediaGone) {
		return Shown{}, false
	}
	return *found, false
}

// named reports whether a request names the chat and the direction of a message on the phone of own, and in a group its
// author.
func named(rmr waBinary.Node, own number, m *Shown) bool {
	jid, _ := attrJID(&rmr, "jid")
	if m.Group != "" {
		participant, _ := attrJID(&rmr, "participant")
		author, ok := numberOf(participant)
		return ok && jid == groupAddress(m.Group) && author.String() == m.From
	}
	chat, ok := numberOf(jid)
	return ok && chat == m.other(own) && (attr(&rmr, "from_me") == "true") == m.writtenBy(own)
}

// again uploads the file of a message again. It returns the answer for the companion: gone if the
// phone no longer has the file.
func (v reuploads) again(own number, m Shown, n *waBinary.Node, gone waBinary.Node) waBinary.Node {
	box, err := retryBox(m.Media.Key)
	if err != nil {
		return gone
	}
	if !asksFor(m.ID, box, n) {
		return sealedResult(box, &waMmsRetry.MediaRetryNotification{
			StanzaID: &m.ID, Result: waMmsRetry.MediaRetryNotification_DECRYPTION_ERROR.Enum(),
		})
	}
	one, err := v.blobs.again(blobID(m.Media.Path), own)
	if err != nil {
		return gone
	}
	v.move(own, m.ID, one.path())
	return sealedResult(box, &waMmsRetry.MediaRetryNotification{
		StanzaID: &m.ID, DirectPath: new(one.path()), Result: waMmsRetry.MediaRetryNotification_SUCCESS.Enum(),
	})
}

// move changes where the file of a message is.
func (v reuploads) move(n number, id, path string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.records.shown(n, id)
	if m == nil || m.Media == nil {
		return
	}
	file := *m.Media // callers have copies of the message
	file.Path = path
	m.Media = &file
	v.records.save(n, m)
}

// sealedResult returns the sealed answer to a request for a file.
func sealedResult(box cipher.AEAD, result *waMmsRetry.MediaRetryNotification) waBinary.Node {
	plain, _ := proto.Marshal(result) // it has no required fields
	iv := newSecret()[:ivSize]
	return waBinary.Node{Tag: "encrypt", Content: []waBinary.Node{
		{Tag: "enc_p", Content: box.Seal(nil, iv, plain, []byte(result.GetStanzaID()))}, {Tag: "enc_iv", Content: iv},
	}}
}

// retryBox returns the cipher of requests for a file.
func retryBox(mediaKey []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, mediaKey, nil, retryLabel, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// asksFor reports whether the sealed part of a request names a message.
func asksFor(id string, box cipher.AEAD, n *waBinary.Node) bool {
	sealed, iv := content(n.GetChildByTag("encrypt", "enc_p")), content(n.GetChildByTag("encrypt", "enc_iv"))
	if len(iv) != ivSize {
		return false
	}
	plain, err := box.Open(nil, iv, sealed, []byte(id))
	var request waMmsRetry.ServerErrorReceipt
	return err == nil && proto.Unmarshal(plain, &request) == nil && request.GetStanzaID() == id
}
