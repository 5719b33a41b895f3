// The program decodes every example of an event into the type that oapi-codegen made for it, without
// unknown members, and encodes a message with the members that a text needs.
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

func run(examples string) error {
	raw, err := os.ReadFile(examples)
	if err != nil {
		return err
	}
	var events map[string]json.RawMessage
	if err := json.Unmarshal(raw, &events); err != nil {
		return err
	}
	for kind, event := range events {
		if err := accepts(kind, event); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	fmt.Printf("oapi-codegen: %d kinds of events\n", len(events))
	return send()
}

// accepts decodes an event, and checks that encoding it gives the same members.
func accepts(kind string, event json.RawMessage) error {
	v, known := kinds[kind]
	if !known {
		return fmt.Errorf("there is no type")
	}
	d := json.NewDecoder(bytes.NewReader(event))
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
	if err := json.Unmarshal(event, &want); err != nil {
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
