// Package synth makes models of random weights: any shape of a supported
// family, as a GGUF file or as a folder in Hugging Face's layout, with a real
// tokenizer and chat template. They load, run and fill memory like a real
// checkpoint of the shape; what they say means nothing.
//
// The invariant that matters: a weight is a function of the seed, the tensor's
// name in Hugging Face's layout, its row and its column. So the files of one
// shape and seed hold the same model whatever their container, their number of
// shards and the machine that made them, up to the rounding of the number
// format; and two runs give the same bytes.
//
// Weights are scaled so that activations keep their size through the layers and
// logits have a deviation of about three nats (weights.go). Rows of the
// vocabulary that the tokenizer does not use are all but impossible to sample,
// so models whose vocabularies were padded to different sizes can write one
// sequence together.
//
// Read next: Write in write.go, Shape in shape.go.
package synth
