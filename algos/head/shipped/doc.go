// Package shipped carries the heads that come with tokenrouter: trained for the
// embedded models, so that routers which need one run out of the box. Each is two
// files in this folder, NAME.safetensors and NAME.json; adding them is all it takes.
//
// Read package head for what the files hold.
package shipped
