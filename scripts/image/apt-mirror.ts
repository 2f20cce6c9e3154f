import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The mirror for a suite that apt is not configured for. */
export const DEBIAN_MIRROR = 'https://deb.debian.org/debian'

/**
 * The mirror that this machine's apt uses for a suite: the first that has the component `main`.
 * @param directory apt's configuration, by default `/etc/apt`.
 */
export async function aptMirror(suite: string, directory = '/etc/apt'): Promise<string> {
  const parts = join(directory, 'sources.list.d')
  const names = (await readdir(parts).catch((): string[] => [])).toSorted()
  const paths = [join(directory, 'sources.list'), ...names.map((name) => join(parts, name))]
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => '')))
  const sources = texts.flatMap((text, index) => (paths[index]?.endsWith('.sources') ? stanzas(text) : oneLiners(text)))
  const fitting = sources.find(({ suites, components }) => suites.includes(suite) && components.includes('main'))
  return fitting === undefined ? DEBIAN_MIRROR : fitting.uri.replace(/\/+$/, '')
}

interface Source {
  readonly uri: string
  readonly suites: readonly string[]
  readonly components: readonly string[]
}

/** `deb [options] URI SUITE COMPONENT…` */
function oneLiners(text: string): Source[] {
  return text.split('\n').flatMap((line) => {
    const words = line
      .replace(/#.*/, '')
      .replace(/\[[^\]]*\]/, ' ')
      .trim()
      .split(/\s+/)
    const [type, uri = '', suite = '', ...components] = words
    return type === 'deb' && isFetched(uri) ? [{ uri, suites: [suite], components }] : []
  })
}

/** Stanzas of `Field: value`, with continuation lines. */
function stanzas(text: string): Source[] {
  const bare = text.replace(/^#.*\n?/gm, '')
  return bare.split(/\n\s*\n/).flatMap((stanza) => {
    const fields = new Map<string, string>()
    for (const field of stanza.split(/\n(?=\S)/)) {
      const at = field.indexOf(':')
      if (at > 0) fields.set(field.slice(0, at).trim().toLowerCase(), field.slice(at + 1).trim())
    }
    const words = (name: string): string[] => (fields.get(name) ?? '').split(/\s+/).filter((word) => word !== '')
    const uri = words('uris').find(isFetched)
    const isOn = words('types').includes('deb') && !/^(no|false|off|0)$/i.test(fields.get('enabled') ?? 'yes')
    return isOn && uri !== undefined ? [{ uri, suites: words('suites'), components: words('components') }] : []
  })
}

/** True for the protocols that debootstrap supports. */
function isFetched(uri: string): boolean {
  return /^(https?|file):\//.test(uri)
}
