import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { formatPath, formatValue } from '../support/index.ts'

/** A directory of the host with a `SKILL.md`: instructions for a model, with files that they use. */
export interface Skill {
  /** Lower-case letters, digits and single hyphens, at most 64. */
  readonly name: string
  /** Its purpose and when to use it, for a model that chooses one. */
  readonly description: string
  readonly directory: string
  /** All of the front matter of its `SKILL.md`. */
  readonly frontMatter: Readonly<Record<string, unknown>>
  /** The text behind the front matter. */
  readonly instructions: string
}

const FILE = 'SKILL.md'
const MAX_FILE_BYTES = 1024 * 1024
/** YAML is parsed on the thread of the host. */
const MAX_FRONT_MATTER_CHARS = 16 * 1024
const MAX_ALIASES = 50
/** Line ends and indicators of YAML. The time of the parser grows with them; 500 take at most 20 ms. A description has few. */
const MARKS = /[\n[\]{},:?&*!|>#"'%@`-]/g
const MAX_MARKS = 500
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
const MAX_NAME = 64
const MAX_DESCRIPTION = 1024
const MAX_SKILLS = 1000

/**
 * Reads the front matter and the instructions of a skill. Its front matter has at most 16,384 characters, of which at most 500 are
 * line ends and indicators of YAML.
 * @throws SandglassError `invalid_request` naming what is wrong with its `SKILL.md`.
 */
export async function readSkill(directory: string): Promise<Skill> {
  const path = join(directory, FILE)
  const text = await readText(path)
  const [, yaml, instructions = ''] =
    /(?<![^])\uFEFF?---[ \t]*\r?\n([^]*?)^---[ \t]*(?:\r?\n([^]*))?$/m.exec(text) ?? []
  if (yaml === undefined) throw invalid(path, 'it does not begin with front matter between two lines "---"')
  const frontMatter = await parseFrontMatter(path, yaml)
  const { name, description } = frontMatter
  if (typeof name !== 'string' || name.length > MAX_NAME || !NAME.test(name))
    throw invalid(path, `name: ${formatValue(name)} is not made of lower-case letters, digits and single hyphens`)
  if (typeof description !== 'string' || description.trim() === '' || description.length > MAX_DESCRIPTION)
    throw invalid(path, `description: it is not a text of at most ${MAX_DESCRIPTION} characters`)
  return { name, description, directory, frontMatter, instructions }
}

/**
 * The skills in the directories below a directory, by name. Directories without a `SKILL.md` are passed over.
 * @throws SandglassError `invalid_request` for a `SKILL.md` that is wrong, for two skills of one name, and for more than 1,000.
 */
export async function listSkills(directory: string): Promise<Skill[]> {
  const skills = new Map<string, Skill>()
  for (const path of await skillDirectories(directory)) {
    const skill = await readSkill(path)
    const other = skills.get(skill.name)
    if (other !== undefined) throw invalid(path, `its name ${skill.name} is that of ${formatPath(other.directory)}`)
    skills.set(skill.name, skill)
  }
  return [...skills.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

async function skillDirectories(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true })
    const paths = entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name))
    const found: string[] = []
    for (const path of paths) {
      if ((await readdir(path)).includes(FILE)) found.push(path)
      if (found.length > MAX_SKILLS) throw invalid(directory, `it has more than ${MAX_SKILLS} skills`)
    }
    return found
  } catch (error) {
    if (error instanceof SandglassError) throw error
    throw invalid(directory, messageOf(error))
  }
}

async function readText(path: string): Promise<string> {
  try {
    // A FIFO in its place must not block the opening of it.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const found = await file.stat()
    if (!found.isFile()) throw invalid(path, 'it is not a regular file')
    if (found.size > MAX_FILE_BYTES) throw invalid(path, `it has ${found.size} bytes; at most ${MAX_FILE_BYTES}`)
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.readFile())
  } catch (error) {
    if (error instanceof SandglassError) throw error
    throw invalid(
      path,
      errnoOf(error) === 'ENOENT' ? 'there is no such file; a skill is a directory with a SKILL.md' : messageOf(error),
    )
  }
}

async function parseFrontMatter(path: string, yaml: string): Promise<Record<string, unknown>> {
  if (yaml.length > MAX_FRONT_MATTER_CHARS)
    throw invalid(path, `its front matter has more than ${MAX_FRONT_MATTER_CHARS} characters`)
  if ((yaml.match(MARKS)?.length ?? 0) > MAX_MARKS)
    throw invalid(path, `its front matter has more than ${MAX_MARKS} line ends and indicators of YAML`)
  // Imported only if there is a skill: it takes 20 ms to load.
  const { parse } = await import('yaml')
  let parsed: unknown
  try {
    parsed = parse(yaml, { maxAliasCount: MAX_ALIASES, prettyErrors: true, logLevel: 'error' })
  } catch (error) {
    throw invalid(path, `its front matter is not YAML: ${messageOf(error)}`)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw invalid(path, 'its front matter is not a list of keys and values')
  return parsed as Record<string, unknown>
}

function invalid(path: string, problem: string): SandglassError {
  return new SandglassError('invalid_request', `${formatPath(path)}: ${problem}`)
}
