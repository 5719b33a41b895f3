package api

const jsonType = "application/json"
