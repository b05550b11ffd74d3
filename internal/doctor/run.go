package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// Limit is how long the whole may take.
	Limit = 4800 * time.Millisecond
	// stepLimit is how long one check may take. A dial or a question to a
	// nameserver has used up its own limit by then.
	stepLimit = 2100 * time.Millisecond
	// unitsLimit is how long systemd may take to say how units stand.
	unitsLimit = time.Second
)

// errNoAnswer is the cause with which a check's context ends.
type errNoAnswer time.Duration

func (e errNoAnswer) Error() string {
	return fmt.Sprintf("no answer within %s", time.Duration(e).Round(100*time.Millisecond))
}

// Run makes all checks and returns their results in the order of the walk. On a
// machine that is not Azure all but the first are skipped.
func Run(ctx context.Context, env *Env) []Step { return run(ctx, env, checks()) }

func run(ctx context.Context, env *Env, all []check) []Step {
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, errNoAnswer(Limit))
	defer cancel()
	verdicts := make(map[string]chan Verdict, len(all))
	for _, c := range all {
		verdicts[c.name] = make(chan Verdict, 1)
	}
	// wait gives a verdict to all who wait for it.
	wait := func(name string) Verdict {
		select {
		case v := <-verdicts[name]:
			verdicts[name] <- v
			return v
		case <-ctx.Done():
			return Fail
		}
	}
	env.unitsRead = make(chan struct{})
	go env.readUnits(ctx)
	results := make([]chan result, len(all))
	for i, c := range all {
		results[i] = make(chan result, 1)
		go func() {
			r := one(ctx, env, c, wait)
			verdicts[c.name] <- r.verdict
			results[i] <- r
		}()
	}
	steps := make([]Step, len(all))
	for i, c := range all {
		var r result
		select {
		case r = <-results[i]:
		case <-ctx.Done():
			select {
			case r = <-results[i]:
			case <-time.After(50 * time.Millisecond): // some file, or some library, keeps to no limit
				r = fail(context.Cause(ctx).Error(), "look for what hangs", "sudo dmesg --level=err,warn")
			}
		}
		steps[i] = r.step(c.name)
	}
	return steps
}

// one makes a check once those before it are done.
func one(ctx context.Context, env *Env, c check, wait func(string) Verdict) result {
	if c.name != stepPlatform && wait(stepPlatform) != OK {
		return skip("this machine is not Azure")
	}
	for _, name := range c.after {
		wait(name)
	}
	for _, name := range c.needs {
		if v := wait(name); v == Fail || v == Skipped {
			return skip(fmt.Sprintf("not looked at: %s %s", name, verb(v)))
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, errNoAnswer(stepLimit))
	defer cancel()
	return c.run(ctx, env)
}

func verb(v Verdict) string {
	if v == Fail {
		return "failed"
	}
	return "was skipped"
}

// why is an error in as few words as will do: the reason why the context ended,
// if it was that.
func why(ctx context.Context, err error) string {
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		return context.Cause(ctx).Error()
	}
	return err.Error()
}
