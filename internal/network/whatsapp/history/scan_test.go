package history

import (
	"compress/zlib"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// TestMemoryIsBounded reads a part with 20,000 messages of 10 kB, which are 200 MB: the scanner does not keep them in memory.
func TestMemoryIsBounded(t *testing.T) {
	const count, most = 20_000, 48 << 20
	text := strings.Repeat("0123456789", 1000)
	r, w := io.Pipe()
	go func() {
		z := zlib.NewWriter(w)
		_, err := z.Write(conversation(count, text))
		_ = z.Close() // the reader sees a stream that was cut
		w.CloseWithError(err)
	}()
	spool, err := os.CreateTemp(t.TempDir(), "spool")
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	runtime.GC()
	before := heap()
	p, err := Scan(r, 64<<20, spool)
	if err != nil {
		t.Fatal(err)
	}
	n, last := 0, uint64(0)
	err = p.Each(func(chat types.JID, encoded []byte) error {
		if at := timeOf(encoded); at < last {
			t.Errorf("a message of %d comes after one of %d", at, last)
		} else {
			last = at
		}
		if n++; n%1000 == 0 {
			if used := heap() - before; used > most {
				t.Fatalf("%d bytes are in use after %d messages", used, n)
			}
		}
		return nil
	})
	if err != nil || n != count {
		t.Errorf("%d messages, %v", n, err)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// conversation is a part with one chat, newest message first, as phones send it. It is made once, and not counted.
func conversation(count int, text string) []byte {
	var chat []byte
	chat = protowire.AppendString(protowire.AppendTag(chat, chatID, protowire.BytesType), "15551234567@s.whatsapp.net")
	for i := range count {
		m, _ := proto.Marshal(&waWeb.WebMessageInfo{ //nolint:errcheck // complete
			Message: &waE2E.Message{Conversation: &text}, MessageTimestamp: new(uint64(count - i)),
		})
		m = protowire.AppendBytes(protowire.AppendTag(nil, wrappedMessage, protowire.BytesType), m)
		chat = protowire.AppendBytes(protowire.AppendTag(chat, chatMessages, protowire.BytesType), m)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, syncChats, protowire.BytesType), chat)
}

// FuzzScan reads any bytes as the fields of a part.
func FuzzScan(f *testing.F) {
	f.Add(conversation(2, "hello"))
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x10, 0x01})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var packed strings.Builder
		z := zlib.NewWriter(&packed)
		if _, err := z.Write(raw); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		spool, err := os.CreateTemp(t.TempDir(), "spool")
		if err != nil {
			t.Fatal(err)
		}
		defer spool.Close()
		p, err := Scan(strings.NewReader(packed.String()), int64(packed.Len()), spool)
		if err == nil {
			err = p.Each(func(types.JID, []byte) error { return nil })
			if err != nil {
				t.Error(err)
			}
		}
	})
}
