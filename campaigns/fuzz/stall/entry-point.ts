import type { RunOptions, SolveOptions } from '../../../src/index.ts'
import { type Answer, hostOf } from './peer.ts'

/** One way for hostile bytes into the host. */
export interface EntryPoint {
  readonly name: string
  readonly from: 'a model' | 'a script' | 'a tool server' | 'a journal'
  /** The unit of `sizes`. */
  readonly unit: string
  /** Growing sizes; the last one is at or beyond the default limit of the entry point. */
  readonly sizes: readonly number[]
  /** The default limit in question, in bytes: memory may grow by it, and by 64 MiB more. */
  readonly limitBytes: number
  /** Makes the input of a size; the returned function drives it through the entry point. Only that function is measured. */
  readonly prepare: (size: number) => Promise<Prepared>
}

/** An input that is ready. */
export interface Prepared extends AsyncDisposable {
  readonly act: () => Promise<unknown>
}

export const KiB = 1024
export const MiB: number = 1024 * KiB

/** Repeated, it begins a secret at each place and never completes it. */
export const NEARLY_SECRET = 'ab'
export const SECRETS: Readonly<Record<string, string>> = {
  KEY: `${NEARLY_SECRET.repeat(500)}c`,
  OTHER: 'a"b\\c\n'.repeat(50),
  THIRD: 'x'.repeat(4096),
  SHORT: 'tops3cret',
}

/** JSON lists and objects of a size. */
export const many = (n: number, item: string): string => `[${Array.from({ length: n }, () => item).join(',')}]`
export const keys = (n: number): string => `{${Array.from({ length: n }, (_, at) => `"k${at}":1`).join(',')}}`
export const nestedJson = (n: number): string => '['.repeat(n) + ']'.repeat(n)

/** A run that ends at its deadline, because the peer waits for an answer that the host does not send. */
const SOON = { executionTimeoutSec: 5, maxToolWaitSec: 0 }

/** A run whose script sends prepared lines. */
export async function running(answer: Answer, options: RunOptions = {}): Promise<Prepared> {
  const host = await hostOf(answer)
  return {
    act: () =>
      host.run('emit_result(1)', { mode: 'interactive', limits: SOON, ...options }).catch((error: unknown) => error),
    [Symbol.asyncDispose]: () => host.close(),
  }
}

/** A task whose script sends prepared lines. */
export async function solving(answer: Answer, options: SolveOptions): Promise<Prepared> {
  const host = await hostOf(answer)
  return {
    act: () => host.solve('Do it', { policy: 'off', ...options }),
    [Symbol.asyncDispose]: () => host.close(),
  }
}
