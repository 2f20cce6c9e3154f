/** The numbers of signals on Linux, whatever the system of the host. */
const NUMBERS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGSTKFLT: 16,
  SIGCHLD: 17,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGTTIN: 21,
  SIGTTOU: 22,
  SIGURG: 23,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGVTALRM: 26,
  SIGPROF: 27,
  SIGWINCH: 28,
  SIGIO: 29,
  SIGPWR: 30,
  SIGSYS: 31,
}

/** Returns the exit code of a program as a shell reports it; 128 for a signal without a name. */
export function exitCodeOf(exitCode: number | null, signal: string | null): number {
  if (exitCode !== null) return exitCode
  return 128 + (signal === null ? 0 : (NUMBERS[signal] ?? (Number(signal.replace(/\D+/g, '')) || 0)))
}

export function isSignal(name: string): boolean {
  return Object.hasOwn(NUMBERS, name)
}
