import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The import specifier of a source of this repository for a program of {@link printedBy}: `src/index.ts` as an absolute path. */
export function sourceName(path: string): string {
  return JSON.stringify(fileURLToPath(new URL(`../../${path}`, import.meta.url)))
}

/**
 * The output of a JavaScript module on stdout, run by a Node of its own. One that does not end is killed after 60 s, so that
 * a call that never returns fails its test and not the whole run.
 */
export async function printedBy(program: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  await once(child, 'close')
  return printed
}
