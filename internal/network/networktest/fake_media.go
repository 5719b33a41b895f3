package networktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"postern/internal/network"
	"postern/internal/postern"
)

// fakeFile is a file on the network, at one reference.
type fakeFile struct {
	owner   string // number of the account that sent or received it
	data    []byte
	expired bool // only phones have it
}

// errRefused is the answer to an upload or a download that may be repeated.
var errRefused = errors.New("fake: the network refused the transfer")

// Store puts a file on the network, as the phone of somebody does who sends it to an account.
// The result is for [network.Inbound].
func (f *Fake) Store(account string, data []byte) network.Ref {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store(account, data)
}

func (f *Fake) store(owner string, data []byte) network.Ref {
	ref := "file:" + f.newID()
	f.files[ref] = &fakeFile{owner: owner, data: data}
	return network.Ref(ref)
}

// Stored returns the file at a reference, whether it was uploaded or received. It reports
// false if there never was one.
func (f *Fake) Stored(ref network.Ref) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file := f.files[string(ref)]
	if file == nil {
		return nil, false
	}
	return slices.Clone(file.data), true
}

// Sent returns a message as a driver was given it.
func (f *Fake) Sent(networkID string) (network.Outbound, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.sent[networkID]
	return m, ok
}

// Order returns the texts of the messages that were sent, in the order in which they were.
func (f *Fake) Order() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.order)
}

// Attach lets a contact send a document with a file to an account.
func (f *Fake) Attach(_ context.Context, account, from string, data []byte) (string, error) {
	return f.Inbound(account, network.Inbound{
		Sender: from, ChatID: from, From: from, FromName: "Phone " + from, File: f.Store(account, data),
		Content: postern.Content{Kind: postern.KindDocument, Media: &postern.Media{
			MIMEType: "application/octet-stream", Size: int64(len(data)), Filename: "file.bin", Status: postern.MediaPending,
		}},
	})
}

// File returns the file of a message that was sent.
func (f *Fake) File(_, networkID string) ([]byte, error) {
	m, ok := f.Sent(networkID)
	if !ok || m.File == nil {
		return nil, ErrNoSuch
	}
	data, ok := f.Stored(m.File.Ref)
	if !ok {
		return nil, ErrNoSuch
	}
	return data, nil
}

// expire leaves the files of an account on phones only. The caller holds mu.
func (f *Fake) expire(owner string) {
	for _, file := range f.files {
		file.expired = file.expired || file.owner == owner
	}
}

// online returns the account of a session. The caller holds f.mu.
func (s *fakeSession) online(ctx context.Context) (*fakeAccount, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("fake: %w", err)
	}
	a := s.f.accounts[s.account]
	if !a.isLive() {
		return nil, network.ErrNotConnected
	}
	return a, nil
}

// takes disarms a fault, and reports whether it was armed.
func (a *fakeAccount) takes(fault Fault) bool {
	armed := a.armed[fault]
	delete(a.armed, fault)
	return armed
}

// Upload keeps the file.
func (s *fakeSession) Upload(ctx context.Context, file network.File) (network.Ref, error) {
	if !file.Kind.HasMedia() {
		return nil, &network.Rejected{Code: postern.MediaUnusable, Detail: "a message of this kind carries no file"}
	}
	data, err := io.ReadAll(io.NewSectionReader(file.Body, 0, file.Size))
	if err != nil {
		return nil, fmt.Errorf("fake: %w", err)
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	a, err := s.online(ctx)
	switch {
	case err != nil:
		return nil, err
	case a.takes(FaultUpload):
		return nil, errRefused
	}
	return s.f.store(a.number, data), nil
}

// Download writes a file to dst, and leaves dst at its start.
func (s *fakeSession) Download(ctx context.Context, ref network.Ref, dst *os.File) error {
	data, err := s.fetch(ctx, ref)
	if err == nil {
		err = dst.Truncate(0)
	}
	if err == nil {
		_, err = dst.WriteAt(data, 0)
	}
	if err == nil {
		_, err = dst.Seek(0, io.SeekStart)
	}
	return err
}

func (s *fakeSession) fetch(ctx context.Context, ref network.Ref) ([]byte, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	file := s.f.files[string(ref)]
	if file == nil {
		return nil, network.ErrMediaUseless
	}
	a, err := s.online(ctx)
	switch {
	case err != nil:
		return nil, err
	case file.expired || a.takes(FaultMedia):
		return nil, network.ErrMediaGone
	}
	return file.data, nil
}

// RequestMedia lets the phone put the file at another reference, unless a fault says
// otherwise.
func (s *fakeSession) RequestMedia(ctx context.Context, m network.MediaRequest) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	file := s.f.files[string(m.Ref)]
	if file == nil {
		return network.ErrMediaUseless
	}
	a, err := s.online(ctx)
	if err != nil || a.takes(FaultMediaSilent) {
		return err
	}
	offer := network.Offered{NetworkID: m.NetworkID}
	if !a.takes(FaultMediaGone) {
		offer.Ref = s.f.store(a.number, file.data)
	}
	a.deliver(offer)
	return nil
}
