// Package deploy checks what deploy/docker and deploy/helm contain: the Dockerfile, the compose file and the chart. Its
// module keeps the libraries that read them out of the server's.
package deploy
