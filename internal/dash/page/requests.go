package page

import "time"

// RequestsView is a page of the log of API requests.
type RequestsView struct {
	Text     string // what was searched for
	Outcome  string // the chosen one of [Outcomes]; "": all
	Requests []APIRequest
	More     string // where the next page is; "": this is the last
}

// APIRequest is a request to the API that was answered.
type APIRequest struct {
	ID, Method, Path string
	Status           int
	Reason           string // why it was refused; "": it was not
	Millis           int64
	Key              string // its name, or its id
	Client           string // an IP address
	At               time.Time
}

// Outcomes are the filters of the list.
func Outcomes() []Choice {
	return []Choice{{"", "All"}, {"accepted", "Accepted"}, {"refused", "Refused (4xx)"}, {"failed", "Failed (5xx)"}}
}
