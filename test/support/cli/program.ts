import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

const SOURCE = join(import.meta.dirname, '../../../src')
const WRITE = join(import.meta.dirname, 'write-program.main.ts')

/** The path of the command line's program. In a test run, it is written once for all files: write-program.main.ts. */
export function cliProgram(): string {
  return join(...(written('main.js') ?? [SOURCE, 'cli/main.ts']))
}

/** The path of the library that this program is a part of, for modules that it loads: a ToolCallError of another is none to it. */
export function libraryOfCli(): string {
  return join(...(written('index.js') ?? [SOURCE, 'index.ts']))
}

/** A file of the written program, or undefined outside of a test run. */
function written(name: string): [string, string] | undefined {
  const run = process.env['SANDGLASS_TEST_RUN']
  if (run === undefined || run === '') return undefined
  // Frames below a folder of this name are no place of a user's mistake, like those of `src/`.
  const packages = join(run, 'node_modules')
  const directory = join(packages, 'sandglass')
  if (!existsSync(directory)) {
    mkdirSync(packages, { recursive: true })
    execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', WRITE, directory])
  }
  return [directory, name]
}
