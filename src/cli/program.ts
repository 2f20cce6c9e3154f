import { basename } from 'node:path'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { UsageError } from './failure.ts'
import { hostAndPath, secretsFrom } from './run-request.ts'

/** The flags that `exec` and `shell` share, as options of a program. */
export function programOptions(
  given: Given,
  { env }: Context,
): { readonly env: Record<string, string>; readonly secrets: Record<string, string>; readonly cwd?: string } {
  const variables = Object.fromEntries(given.all('--env').map(variable))
  const cwd = given.last('--cwd')
  return { env: variables, secrets: secretsFrom(given.all('--secret'), env), ...(cwd === undefined ? {} : { cwd }) }
}

/** The files of `--file`, each read as a stream when its turn comes. */
export function hostFiles(given: Given): Record<string, { readonly path: string }> {
  const files: Record<string, { readonly path: string }> = {}
  for (const text of given.all('--file')) {
    const [host, path = basename(host)] = hostAndPath(text)
    if (Object.hasOwn(files, path)) throw usage(`--file names ${JSON.stringify(path)} twice`)
    files[path] = { path: host }
  }
  return files
}

function variable(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw usage(`--env ${JSON.stringify(text)}: write NAME=VALUE`)
  return [text.slice(0, at), text.slice(at + 1)]
}

function usage(message: string): UsageError {
  return new UsageError('invalid_request', message)
}
