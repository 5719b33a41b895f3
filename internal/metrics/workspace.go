package metrics

import (
	"postern/internal/postern"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// workspaces counts per workspace: the first ones that do something after the start, up to [maxWorkspaces], and
// all others together as "other". A nil one counts nothing.
type workspaces struct {
	names    bounded
	messages *prometheus.CounterVec // by workspace, direction and status
	events   *prometheus.CounterVec // by workspace
}

func newWorkspaces(f promauto.Factory) *workspaces {
	return &workspaces{
		names: newBounded(maxWorkspaces),
		messages: f.NewCounterVec(prometheus.CounterOpts{
			Name: "postern_workspace_messages_total",
			Help: "Messages that came to a status, by workspace, direction and status.",
		}, []string{"workspace", "direction", "status"}),
		events: f.NewCounterVec(prometheus.CounterOpts{
			Name: "postern_workspace_events_total", Help: "Events that were recorded, by workspace.",
		}, []string{"workspace"}),
	}
}

func (w *workspaces) moved(m *postern.Message, status postern.MessageStatus) {
	if w != nil {
		w.messages.WithLabelValues(w.names.of(string(m.WorkspaceID)), m.Direction, string(status)).Inc()
	}
}

func (w *workspaces) recorded(e *postern.Event) {
	if w != nil {
		w.events.WithLabelValues(w.names.of(string(e.WorkspaceID))).Inc()
	}
}
