package listen

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func messagesOf(t *testing.T, r io.Reader) (list []message, end error) {
	t.Helper()
	watch := time.AfterFunc(time.Hour, func() {})
	s := newStream(io.NopCloser(r), watch, func(error) {})
	defer s.close()
	for {
		m, err := s.next()
		if err != nil {
			return list, err
		}
		list = append(list, m)
	}
}

func TestStreamIsReadAsTheStandardDefines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   string
		want []message
	}{
		"event":            {"id: 1\nevent: a.b\ndata: {\"x\": 1}\n\n", []message{{"1", "a.b", []byte(`{"x": 1}`)}}},
		"no space":         {"id:1\ndata:x\n\n", []message{{"1", "", []byte("x")}}},
		"one space only":   {"data:  x \n\n", []message{{data: []byte(" x ")}}},
		"colon in a value": {"data: a:b: c\n\n", []message{{data: []byte("a:b: c")}}},
		"CR LF":            {"id: 1\r\ndata: x\r\n\r\n", []message{{"1", "", []byte("x")}}},
		"empty data":       {"data\n\n", []message{{data: []byte{}}}},
		"two lines":        {"data: a\ndata: b\n\n", []message{{data: []byte("a\nb")}}},
		"id alone":         {"id: 1\n\n", []message{{id: "1"}}},
		"empty id":         {"id: \n\nid\n\n", []message{{}, {}}},
		"comment":          {": waiting\n\n", []message{{}}},
		"other fields":     {"retry: 1\nwhat\ndata: x\n\n", []message{{data: []byte("x")}}},
		"cut off":          {"data: x\n\ndata: y\n", []message{{data: []byte("x")}}},
		"nothing":          {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := messagesOf(t, iotest.OneByteReader(strings.NewReader(tt.in)))
			if !sameMessages(got, tt.want) || !errors.Is(err, errEnded) {
				t.Errorf("%q is read as %+v (%v), want %+v", tt.in, got, err, tt.want)
			}
		})
	}
}

func sameMessages(a, b []message) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].id != b[i].id || a[i].name != b[i].name || string(a[i].data) != string(b[i].data) ||
			(a[i].data == nil) != (b[i].data == nil) {
			return false
		}
	}
	return true
}

// FuzzStream: the bytes are read as the same messages however they are split, and
// each message can be written and read again.
func FuzzStream(f *testing.F) {
	f.Add("id: 1\nevent: a\ndata: {}\n\n: waiting\n\nid:\n\n")
	f.Add("data: a\r\ndata\r\n\r\ndata: x")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := messagesOf(t, strings.NewReader(in))
		if err == nil {
			t.Fatal("a stream without an end")
		}
		if again, _ := messagesOf(t, iotest.HalfReader(strings.NewReader(in))); !sameMessages(got, again) {
			t.Errorf("%q is read as %+v, and split differently as %+v", in, got, again)
		}
		for _, m := range got {
			text := "id: " + m.id + "\nevent: " + m.name + "\ndata: " + strings.ReplaceAll(string(m.data), "\n",
				"\ndata: ") + "\n\n"
			want := []message{{m.id, m.name, append([]byte{}, m.data...)}}
			if again, _ := messagesOf(t, strings.NewReader(text)); !sameMessages(again, want) {
				t.Errorf("%q is read as %+v", text, again)
			}
		}
	})
}
