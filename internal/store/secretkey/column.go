package secretkey

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/seal"
)

// column is a column with encrypted values.
type column struct {
	table string
	keys  []string // which name a row, in the order of an index
	value string
	place func(keys []string) string
	list  bool // it holds secrets that a rotation of the webhook's secret has replaced, as JSON

	update *db.Statement
}

func newColumn(table, keys, value string, place func(keys []string) string) column {
	c := column{table: table, keys: strings.Split(keys, ", "), value: value, place: place}
	names, where := "", ""
	for i, key := range c.keys {
		names += fmt.Sprintf("row%d, ", i)
		where += fmt.Sprintf("t.%s = @row%d AND ", key, i)
	}
	c.update = db.NewStatement(names+"old, fresh", fmt.Sprintf(
		`UPDATE %s AS t SET %s = @fresh [FROM @rows] WHERE %st.%s = @old`, table, value, where, value))
	return c
}

// columns are all columns with encrypted values. Without one of them here, its values would be lost with the
// key; TestEveryEncryptedColumnIsKnown compares them with the tables.
func columns() []column {
	one := func(place func(key string) string) func([]string) string {
		return func(keys []string) string { return place(keys[0]) }
	}
	user := func(keys []string) string { return postern.UserID(keys[0]).PasskeyPlace() }
	answer := func(k []string) string { return postern.WorkspaceID(k[0]).AnswerPlace(k[1], k[2], k[3]) }
	session := func(k []string) string { return postern.SessionKeyPlace(k[0], k[1], k[2]) }
	source := one(func(key string) string { return postern.MediaID(key).SourcePlace() })
	endpoint := func(place func(postern.EndpointID) string) func([]string) string {
		return one(func(key string) string { return place(postern.EndpointID(key)) })
	}
	old := newColumn("endpoint", "id", "old_secrets", one(func(key string) string { return key }))
	old.list = true
	return []column{
		newColumn("session_key", "account, kind, name", "value", session),
		newColumn("endpoint", "id", "secret", endpoint(postern.EndpointID.SecretPlace)),
		newColumn("endpoint", "id", "signing_key", endpoint(postern.EndpointID.SigningKeyPlace)),
		newColumn("endpoint", "id", "header_values", endpoint(postern.EndpointID.HeadersPlace)),
		old,
		newColumn("device", "id", "proxy_url", one(func(key string) string { return postern.DeviceID(key).ProxyPlace() })),
		newColumn("alert_url", "workspace_id", "url",
			one(func(key string) string { return postern.WorkspaceID(key).AlertPlace() })),
		newColumn("link", "id", "code", one(func(key string) string { return postern.LinkID(key).CodePlace() })),
		newColumn("link", "id", "passkey_data", one(func(key string) string { return postern.LinkID(key).PasskeyPlace() })),
		newColumn("idempotency", "workspace_id, method, path, key", "answer", answer),
		newColumn("session_request", "id", "input", one(postern.RequestPlace)),
		newColumn("session_request", "id", "outcome", one(postern.RequestPlace)),
		newColumn("history_part", "device_id, network_id", "part",
			func(k []string) string { return postern.HistoryPlace(k[0], k[1]) }),
		newColumn("media", "id", "source", source),
		newColumn("media_upload", "media_id, device_id, kind", "upload", source),
		newColumn("totp", "user_id", "secret", one(func(key string) string { return postern.UserID(key).AppPlace() })),
		newColumn("passkey", "user_id, id", "kept", user),
		newColumn("secret_key", "id", "keepsake", one(func(key string) string { return KeepsakePlace(seal.KeyID(key)) })),
	}
}

// page is the query for a page of rows after one. The value of a row that the present key has encrypted, or that
// has none, is NULL, so that it need not be sent.
func (c column) page(head int) string {
	keys, params := strings.Join(c.keys, ", "), ""
	for i := range c.keys {
		params += fmt.Sprintf(", $%d", i+1)
	}
	n := len(c.keys)
	done := fmt.Sprintf(`substr(%s, 1, %d) = $%d OR length(%s) = 0`, c.value, head, n+2, c.value)
	if c.list {
		done = c.value + ` IN ('[]', 'null')`
	}
	return fmt.Sprintf(`SELECT %s, CASE WHEN %s THEN NULL ELSE %s END FROM %s WHERE (%s) > (%s)
		ORDER BY %s LIMIT $%d + 0`, keys, done, c.value, c.table, keys, params[2:], keys, n+1)
}

// reseal returns a value as it is encrypted with the present key.
func (c column) reseal(box *seal.Box, keys []string, value []byte) ([]byte, error) {
	if !c.list {
		return box.Reseal(value, c.place(keys))
	}
	var list []postern.OldSecret
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, err
	}
	id, before := postern.EndpointID(keys[0]), asJSON(list)
	for i, o := range list {
		secret, err := box.Reseal(o.Secret, id.SecretPlace())
		if err != nil {
			return nil, err
		}
		key, err := box.Reseal(o.SigningKey, id.SigningKeyPlace())
		if err != nil {
			return nil, err
		}
		list[i].Secret, list[i].SigningKey = secret, key
	}
	if after := asJSON(list); !bytes.Equal(after, before) {
		return after, nil
	}
	return value, nil
}

func asJSON(list []postern.OldSecret) []byte {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // cannot happen: it has only bytes and times
	}
	return text
}

// sealedWith tells whether a value is, or contains, one that begins with the head of a key.
func (c column) sealedWith(head, value []byte) bool {
	if !c.list {
		return bytes.HasPrefix(value, head)
	}
	var list []postern.OldSecret
	if json.Unmarshal(value, &list) != nil {
		return false
	}
	for _, o := range list {
		if bytes.HasPrefix(o.Secret, head) || bytes.HasPrefix(o.SigningKey, head) {
			return true
		}
	}
	return false
}

// stored returns a value as the statement gets it.
func (c column) stored(value []byte) any {
	if c.list {
		return string(value)
	}
	return value
}
