import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { HARNESS_DIR, packHarness } from '../../sandbox/index.ts'

/** The programs of a pod, as arguments of `python3 -c`, and the first bytes on its channel. */
export interface PodPrograms {
  /** PID 1 of the sandbox: receives its streams, then the harness. */
  readonly sandbox: string
  /** The program of the container beside it, and of its `exec`. */
  readonly relay: string
  /** Tells what a pod reaches; runs in the container beside the sandbox, before any script. */
  readonly reach: string
  /** Fills a directory of the sandbox; runs in the container beside it, before any script. */
  readonly unpack: string
  /** The harness, which goes first on the channel. */
  readonly harness: Uint8Array
}

/** Reads the programs from this package. */
export function readPrograms(): PodPrograms {
  const { program, bytes } = packHarness()
  const read = (name: string): string => readFileSync(join(HARNESS_DIR, name), 'utf8')
  return {
    sandbox: `${read('join.py')}\n${program}`,
    relay: read('relay.py'),
    reach: read('reach.py'),
    unpack: read('unpack.py'),
    harness: bytes,
  }
}
