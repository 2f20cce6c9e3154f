import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** An event that the kernel recorded for one of the watched processes, or for a process that one of them forked. */
export interface TraceEvent {
  /** Seconds of the monotonic clock, with a resolution of 1 us. */
  readonly time: number
  readonly pid: number
  /** A page fault, the name of a system call, or a switch to the process `next`. */
  readonly kind: 'fault' | 'call' | 'switch'
  readonly call?: string
  readonly next?: number
  /** The child that a fork made. */
  readonly forked?: number
}

/** A recording of the kernel, which needs root and tracefs. */
export interface KernelTrace {
  /** Starts to record these processes and whatever they fork. */
  start(pids: readonly number[]): void
  /** Stops, and returns what was recorded, in order. */
  stop(): TraceEvent[]
  close(): void
}

const EVENTS = ['syscalls', 'sched/sched_switch', 'sched/sched_process_fork', 'exceptions/page_fault_user']
const BUFFER_KIB = 32_768
const TRACEFS = '/sys/kernel/tracing'

/** Opens a recording of its own, or returns why there can be none. */
export function openKernelTrace(): KernelTrace | string {
  if (process.getuid?.() !== 0) return 'it needs root'
  try {
    return open()
  } catch (error) {
    return `the kernel does not trace: ${error instanceof Error ? error.message : String(error)}`
  }
}

function open(): KernelTrace {
  const mounted = existsSync(join(TRACEFS, 'trace_clock')) ? undefined : mkdtempSync(join(tmpdir(), 'tracefs-'))
  if (mounted !== undefined) execFileSync('mount', ['-t', 'tracefs', 'none', mounted])
  const own = join(mounted ?? TRACEFS, 'instances', `sandglass-bench-${process.pid}`)
  mkdirSync(own)
  const write = (name: string, text: string): void => writeFileSync(join(own, name), text)
  write('tracing_on', '0')
  write('trace_clock', 'mono')
  write('buffer_size_kb', String(BUFFER_KIB))
  write('options/event-fork', '1')
  for (const name of EVENTS) if (existsSync(join(own, 'events', name))) write(`events/${name}/enable`, '1')
  return {
    start: (pids) => {
      write('set_event_pid', pids.join(' '))
      write('trace', '')
      write('tracing_on', '1')
    },
    stop: () => {
      write('tracing_on', '0')
      return parse(readFileSync(join(own, 'trace'), 'utf8'))
    },
    close: () => {
      rmdirSync(own)
      if (mounted === undefined) return
      execFileSync('umount', [mounted])
      rmdirSync(mounted)
    },
  }
}

const LINE = /-(\d+)\s+\[\d+\]\s+\S+\s+([\d.]+): (\w+)(?:: |\(| -> )(.*)$/

function parse(text: string): TraceEvent[] {
  return text
    .split('\n')
    .map((line) => LINE.exec(line))
    .filter((found) => found !== null)
    .flatMap(([, pid, time, name = '', rest = '']) => eventsOf(Number(pid), Number(time), name, rest))
    .toSorted((a, b) => a.time - b.time)
}

function eventsOf(pid: number, time: number, name: string, rest: string): TraceEvent[] {
  if (name === 'page_fault_user') return [{ time, pid, kind: 'fault' }]
  if (name === 'sched_switch') {
    const next = Number(/next_pid=(\d+)/.exec(rest)?.[1])
    return [{ time, pid, kind: 'switch', next }]
  }
  if (name === 'sched_process_fork') {
    return [{ time, pid, kind: 'call', call: 'fork', forked: Number(/child_pid=(\d+)/.exec(rest)?.[1]) }]
  }
  const isEntry = name.startsWith('sys_') && rest.includes(')')
  return isEntry ? [{ time, pid, kind: 'call', call: name.slice('sys_'.length) }] : []
}
