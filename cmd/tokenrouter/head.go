package main

// headCmd is about trained heads: the networks whose scores routers ask for by
// r.score(name).
type headCmd struct {
	Collect   headCollectCmd   `cmd:"" help:"Gather labelled rows from a pair of models: what the small one knew, and whether the large one should have written."`
	Train     headTrainCmd     `cmd:"" help:"Train a head on rows."`
	Eval      headEvalCmd      `cmd:"" help:"Say how well scores tell rows apart, beside those that need no head."`
	Calibrate headCalibrateCmd `cmd:"" help:"Choose the threshold that gives the large model a wanted share of the tokens, in use."`
	List      headListCmd      `cmd:"" help:"List the heads that routers can name."`
}
