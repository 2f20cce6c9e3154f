import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'

/** A failed case. */
export interface Finding {
  readonly seed: number
  readonly side: string
  readonly number: number
  readonly problem: string
  /** The file with the offending bytes, and the command that repeats this one case. */
  readonly file: string
  readonly command: string
}

/** Saves the offending bytes of a case as a file. */
export function recordFinding(
  seed: number,
  side: string,
  number: number,
  pieces: readonly Uint8Array[],
  problem: unknown,
): Finding {
  const folder = join(tmpdir(), 'sandglass-fuzz')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${side}-seed${seed}-case${number}.bin`)
  writeFileSync(file, Buffer.concat(pieces))
  return { seed, side, number, problem: wordsOf(problem), file, command: repeatCommand(seed, side, number) }
}

/** The one command that runs one case again. */
export function repeatCommand(seed: number, side: string, number: number): string {
  return `npm run fuzz -- --seed ${seed} --only ${side}:${number}`
}

/** Describes a finding. */
export function describeFinding({ seed, side, number, problem, file, command }: Finding): string {
  return `${side} case ${number} of seed ${seed}: ${problem}\n  its bytes: ${file}\n  repeat it: ${command}`
}

function wordsOf(problem: unknown): string {
  return typeof problem === 'string' ? problem : inspect(problem, { depth: 3 }).slice(0, 4000)
}
