import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Reads a script of this folder. */
export function scriptNamed(name: string): string {
  return readFileSync(new URL(`${name}.py`, import.meta.url), 'utf8')
}

/** The tables of the system call filter of the harness, for this machine. */
export interface Filter {
  readonly numbers: Readonly<Record<string, number>>
  readonly refused: readonly string[]
  readonly ownPidOnly: readonly string[]
  readonly families: readonly number[]
}

/** Reads the tables of the filter out of the harness, by Python. */
export function readFilter(): Filter {
  const program = `import json, os
from sandglass_harness.script import seccomp as s
numbers = s.NUMBERS[os.uname().machine]
names = lambda wanted: [name for name in wanted if name in numbers]
print(json.dumps({"numbers": numbers, "refused": names(s.REFUSED), "ownPidOnly": names(s.OWN_PID_ONLY), "families": s.SOCKET_FAMILIES}))`
  const harness = fileURLToPath(new URL('../../../harness', import.meta.url))
  const text = execFileSync('python3', ['-B', '-c', program], {
    env: { ...process.env, PYTHONPATH: harness },
    encoding: 'utf8',
  })
  return JSON.parse(text) as Filter
}
