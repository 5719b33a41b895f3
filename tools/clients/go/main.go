// The program decodes every example of an event, and what the server says of each kind of message, into the
// type that oapi-codegen made for it, without unknown members, and encodes a message with the members that a
// text needs.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"clients/client"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var values [][2]json.RawMessage // type and value
	if err := json.Unmarshal(raw, &values); err != nil {
		return err
	}
	for _, v := range values {
		var kind string
		if err := json.Unmarshal(v[0], &kind); err != nil {
			return err
		}
		if err := accepts(kind, v[1]); err != nil {
			return fmt.Errorf("%s: %w: %s", kind, err, v[1])
		}
	}
	fmt.Printf("oapi-codegen: %d values of %d types\n", len(values), len(kinds))
	return send()
}

// accepts decodes a value, and checks that encoding it gives the same members.
func accepts(kind string, value json.RawMessage) error {
	zero, known := kinds[kind]
	if !known {
		return fmt.Errorf("there is no type")
	}
	v := reflect.New(reflect.TypeOf(zero)).Interface()
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var got, want map[string]any
	if err := json.Unmarshal(again, &got); err != nil {
		return err
	}
	if err := json.Unmarshal(value, &want); err != nil {
		return err
	}
	for name := range want {
		if _, kept := got[name]; !kept || name == "type" && !reflect.DeepEqual(got[name], want[name]) {
			return fmt.Errorf("%s is lost", name)
		}
	}
	return nil
}

func send() error {
	var m client.NewMessage
	return m.FromNewMessageWithoutType(client.NewMessageWithoutType{DeviceId: "dev_1", To: "+15551234567", Body: "Hello"})
}
