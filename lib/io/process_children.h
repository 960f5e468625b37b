// Who of this process's children is waited for by whom. As a subreaper we also inherit orphans that
// nobody waits for; they must be reaped, but never a child whose exit status other code of ours is
// going to take. So every piece of code that starts a child registers it here. One table for the
// process, because children belong to the process and not to a run or thread. Any thread.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <functional>

#include "lib/io/files.h"

namespace norma::children {

// Calls `spawn` (it returns the pid, or -1) and registers the child before anybody could reap it.
pid_t Spawn(const std::function<pid_t()>& spawn);

// Takes the exit status of a registered child that has ended and forgets it; false while it runs.
// Only then can its pid be given to another process.
bool Reap(pid_t pid, siginfo_t* info);

bool IsRegistered(pid_t pid);
size_t RegisteredCount();

// Reaps the ended orphans that came to us. Never blocks; one system call when there is nothing.
void ReapStrays();

// The reading end of an output pipe that background children still hold. Closing it would end a
// server at its next log line (SIGPIPE), so it stays open, is emptied whenever a process is run,
// and goes when its writers are gone or when more than 32 are kept.
void KeepPipe(UniqueFd fd);
void EmptyKeptPipes();
void CloseKeptPipes();

}  // namespace norma::children
