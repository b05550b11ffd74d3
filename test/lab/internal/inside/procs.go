package inside

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is a program to start. What it prints goes to /lab/NAME.log.
type Command struct {
	Name      string
	Argv, Env []string
}

// Procs is PID 1's work: it starts processes, and reaps these and every orphan.
type Procs struct {
	mu      sync.Mutex // held from fork to entry, so that no exit is seen before
	running map[string]process
}

type process struct {
	pid  int
	gone chan struct{}
}

func newProcs() *Procs {
	p := &Procs{running: make(map[string]process)}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			p.reap()
		}
	}()
	return p
}

func (p *Procs) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
		for name, proc := range p.running {
			if proc.pid == pid {
				close(proc.gone)
				delete(p.running, name)
			}
		}
	}
}

// Start starts a process, one of a name at a time.
func (p *Procs) Start(c Command, _ *None) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.running[c.Name]; ok {
		return fmt.Errorf("%s is running already", c.Name)
	}
	log, err := openLog(c.Name)
	if err != nil {
		return err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	pid, err := syscall.ForkExec(c.Argv[0], c.Argv, &syscall.ProcAttr{
		Dir: "/", Env: c.Env, Files: []uintptr{null.Fd(), log.Fd(), log.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Argv[0], err)
	}
	p.running[c.Name] = process{pid: pid, gone: make(chan struct{})}
	return nil
}

func openLog(name string) (*os.File, error) {
	return os.OpenFile("/lab/"+name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// Signalling is a signal for the process that was started under a name.
type Signalling struct {
	Name   string
	Signal syscall.Signal
}

// Signal sends a signal to a process.
func (p *Procs) Signal(s Signalling, _ *None) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	proc, ok := p.running[s.Name]
	if !ok {
		return fmt.Errorf("%s is not running", s.Name)
	}
	return syscall.Kill(proc.pid, s.Signal)
}

// Wait returns when no process of the name is running.
func (p *Procs) Wait(name string, _ *None) error {
	p.mu.Lock()
	proc, ok := p.running[name]
	p.mu.Unlock()
	if ok {
		<-proc.gone
	}
	return nil
}
