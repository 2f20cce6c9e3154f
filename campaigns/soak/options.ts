import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { MACHINE_ENGINES } from '../../test/support/walls.ts'
import type { SoakOptions } from './summary.ts'

/** Options of `npm run soak`. */
export interface SoakCommand extends SoakOptions {
  /** Directory for samples.jsonl and summary.json. */
  readonly out: string
  readonly picture: string | undefined
}

/** Enough samples to judge growth, even in a short soak. */
const FEWEST_SAMPLES = 12

/**
 * Reads the flags.
 * @throws TypeError for an unknown or invalid flag.
 */
export function readOptions(argv: readonly string[]): SoakCommand {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      minutes: { type: 'string', default: '2' },
      engine: { type: 'string', default: 'local' },
      concurrency: { type: 'string', default: '4' },
      seed: { type: 'string', default: '1' },
      every: { type: 'string' },
      kinds: { type: 'string' },
      rest: { type: 'string' },
      out: { type: 'string' },
      picture: { type: 'string' },
    },
  })
  const engine = MACHINE_ENGINES.find((name) => name === values.engine)
  if (engine === undefined)
    throw new TypeError(`--engine: ${values.engine} must be one of ${MACHINE_ENGINES.join(', ')}`)
  const minutes = positive('--minutes', values.minutes)
  return {
    engine,
    minutes,
    concurrency: Math.ceil(positive('--concurrency', values.concurrency)),
    seed: positive('--seed', values.seed),
    everySec: positive('--every', values.every ?? String(Math.min(60, (minutes * 60) / FEWEST_SAMPLES))),
    ...(values.kinds === undefined ? {} : { kinds: values.kinds }),
    ...(values.rest === undefined ? {} : { restSec: positive('--rest', values.rest) }),
    out: values.out ?? join(tmpdir(), `sandglass-soak-of-${engine}`),
    picture: values.picture,
  }
}

function positive(flag: string, text: string): number {
  const value = Number(text)
  if (!(value > 0 && Number.isFinite(value))) throw new TypeError(`${flag}: ${text} must be a number above 0`)
  return value
}
