import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { HARNESS_DIR, harnessSources } from '../../sandbox/index.ts'

/** The harness as it travels into a container that has no file of it. */
export interface Bundle {
  /** What `python3 -c` is given: it reads the rest from its standard input. */
  readonly program: string
  /** The first bytes on its standard input. */
  readonly bytes: Uint8Array
}

/** Packs the harness of this package. */
export function packHarness(): Bundle {
  const packed = deflateSync(JSON.stringify(harnessSources()))
  return {
    program: readFileSync(join(HARNESS_DIR, 'deliver.py'), 'utf8'),
    bytes: Buffer.concat([Buffer.from(`${packed.length}\n`), packed]),
  }
}
