package chaos

import "slices"

// inbound compares what the vendor delivered with the messages and events.
func (j *judging) inbound() {
	for _, v := range j.Vendor {
		if v.Direction != "inbound" {
			continue
		}
		list := j.taken[networked{v.Account, v.NetworkID}]
		switch {
		case len(list) == 0 && v.AckedAt != nil:
			j.report(AcknowledgedLost, v.NetworkID, "acknowledged at %s by %s, and not in the database",
				v.AckedAt.Format("15:04:05.000"), v.Account)
		case v.AckedAt == nil || v.Refused != 0:
			j.report(NotTaken, v.NetworkID, "for %s; refused: %d", v.Account, v.Refused)
		case len(list) > 1:
			j.report(KeptTwice, v.NetworkID, "as %v", list)
		case isAction(v.Type):
			j.action(list[0], v)
		default:
			j.once(list[0], "message.received")
			j.file(list[0], v)
			if said, ok := j.told[list[0]]; j.messages[list[0]].Body != v.Body || ok && said != v.Body {
				j.report(ChangedInbound, list[0], "another body than the vendor's, in the row or in its event")
			}
		}
	}
	for at, list := range j.taken {
		if !j.given[at] {
			j.report(Invented, list[0], "the vendor gave %s no message %s", at.account, at.id)
		}
	}
}

// action compares an action that was received with that of the vendor.
func (j *judging) action(id string, v Entry) {
	i := slices.IndexFunc(j.State.Actions, func(a Action) bool { return a.ID == id })
	if i < 0 {
		j.report(ChangedInbound, id, "it is a message, and the vendor's is a %s", v.Type)
		return
	}
	text := deedOf("", v).text
	if v.Type == "vote" {
		text = hashOfOption(text)
	}
	if a := j.State.Actions[i]; a.Kind != v.Type || a.Text != text || a.About != v.Target {
		j.report(ChangedInbound, id, "it is a %s %q of %s, and the vendor's a %s %q of %s", a.Kind, a.Text, a.About, v.Type,
			text, v.Target)
	}
}

// files compares the files with the storage.
func (j *judging) files() {
	for id, f := range j.State.Files {
		if f.Status == "ready" && !f.Stored {
			j.report(FileMissing, id, "it is ready, and %s is not in the storage", f.SHA256)
		}
	}
	for _, hash := range j.State.Orphans {
		if j.Swept {
			j.report(FileOrphan, hash, "it is in the storage, and belongs to no file")
		}
	}
}

// bytes compares the count of the stored bytes with what is stored. The count says nothing of
// contents that were stored when a kill kept their file from being added.
func (j *judging) bytes() {
	var sum int64
	for hash, size := range j.State.Blobs {
		if sum += size; j.State.Stored[hash] != size {
			j.report(BytesOff, hash, "it counts %d bytes, and the storage has %d", size, j.State.Stored[hash])
		}
	}
	if sum != j.State.Bytes {
		j.report(BytesOff, "storage", "the count is %d bytes, and the contents have %d", j.State.Bytes, sum)
	}
	for id, f := range j.State.Files {
		if _, counts := j.State.Blobs[f.SHA256]; f.Status == "ready" && f.Stored && !counts {
			j.report(BytesOff, id, "its content is not counted")
		}
	}
}

// file compares the file of a received message with that of the vendor.
func (j *judging) file(id string, v Entry) {
	want := fileOf(v)
	if want == "" {
		return
	}
	if f := j.State.Files[j.messages[id].File]; f != (File{"ready", want, true}) {
		j.report(FileLost, id, "its file is %+v, and the vendor has %s", f, want)
		return
	}
	j.once(id, "media.ready")
}
