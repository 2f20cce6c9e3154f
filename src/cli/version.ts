import { readFileSync } from 'node:fs'

/** The version of this package. Its package.json is two folders up from the sources and from the build. */
export function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
