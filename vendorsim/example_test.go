package vendorsim_test

import (
	"context"
	"database/sql"
	"fmt"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// Link a whatsmeow client, send a text and receive one.
func Example() {
	ctx := context.Background()
	v, err := vendorsim.Open(vendorsim.Options{Keys: testKeys}) // Keys: only because this process has many Vendors
	if err != nil {
		panic(err)
	}
	defer func() { _ = v.Close() }()
	whatsmeow.WACertPubKey = v.RootKey() // once per process, before any client connects

	db, err := sql.Open("sqlite", "file:example?mode=memory&_pragma=foreign_keys(1)")
	if err != nil {
		panic(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	devices := sqlstore.NewWithDB(db, "sqlite3", waLog.Noop)
	if err := devices.Upgrade(ctx); err != nil {
		panic(err)
	}

	client := whatsmeow.NewClient(devices.NewDevice(), waLog.Noop)
	client.SetPreLoginHTTPClient(v.HTTPClient())
	client.SetWebsocketHTTPClient(v.HTTPClient())
	client.SetMediaHTTPClient(v.HTTPClient())
	defer client.Disconnect()
	connected, received := make(chan struct{}), make(chan string, 1)
	client.AddEventHandler(func(evt any) {
		switch e := evt.(type) {
		case *events.Connected:
			close(connected)
		case *events.Message:
			if !e.Info.IsFromMe { // the own phone tells its companions too
				received <- e.Message.GetConversation()
			}
		}
	})

	codes, err := client.GetQRChannel(ctx)
	if err != nil {
		panic(err)
	}
	if err := client.Connect(); err != nil {
		panic(err)
	}
	if err := v.Scan(ctx, (<-codes).Code, "+15550001111"); err != nil {
		panic(err)
	}
	<-connected

	friend := types.NewJID("15550002222", types.DefaultUserServer)
	if _, err := client.SendMessage(ctx, friend, &waE2E.Message{Conversation: new("hello")}); err != nil {
		panic(err)
	}
	fmt.Println("the friend's phone shows:", v.Shown("+15550002222")[0].Body)

	if _, err := v.Send(ctx, "+15550001111", "+15550002222", "hi there"); err != nil {
		panic(err)
	}
	fmt.Println("the client received:", <-received)
	// Output:
	// the friend's phone shows: hello
	// the client received: hi there
}
