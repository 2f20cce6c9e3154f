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
/** Line ends and indicators of YAML. The parser's time grows with their number; 500 take at most 20 ms. A description has few. */
const INDICATORS = /[\n[\]{},:?&*!|>#"'%@`-]/g
const MAX_INDICATORS = 500
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
const MAX_NAME = 64
const MAX_DESCRIPTION = 1024
const MAX_SKILLS = 1000

/**
 * Reads the front matter and the instructions of a skill. Its front matter has at most 16,384 characters, of which at most 500 are
 * line ends and indicators of YAML.
 * @throws SandglassError `invalid_request`; the message names the problem of its `SKILL.md`.
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
    throw invalid(
      path,
      `name: ${formatValue(name)} is not 1 to ${MAX_NAME} lower-case letters, digits and single hyphens`,
    )
  if (typeof description !== 'string' || description.trim() === '' || description.length > MAX_DESCRIPTION)
    throw invalid(
      path,
      `description: ${formatValue(description)} is not a non-blank text of at most ${MAX_DESCRIPTION} characters`,
    )
  return { name, description, directory, frontMatter, instructions }
}

/**
 * Reads the skills in the subdirectories of a directory, sorted by name. Subdirectories without a `SKILL.md` are skipped.
 * @throws SandglassError `invalid_request` for an invalid `SKILL.md`, for two skills of one name, and for more than 1,000.
 */
export async function listSkills(directory: string): Promise<Skill[]> {
  const skills = new Map<string, Skill>()
  for (const path of await findSkillDirectories(directory)) {
    const skill = await readSkill(path)
    const other = skills.get(skill.name)
    if (other !== undefined)
      throw invalid(path, `the name ${skill.name} is already used by ${formatPath(other.directory)}`)
    skills.set(skill.name, skill)
  }
  return [...skills.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

async function findSkillDirectories(directory: string): Promise<string[]> {
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
    // Non-blocking, because opening a FIFO in its place would wait for a writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const found = await file.stat()
    if (!found.isFile()) throw invalid(path, 'it is not a regular file')
    if (found.size > MAX_FILE_BYTES) throw invalid(path, `it has ${found.size} bytes; the limit is ${MAX_FILE_BYTES}`)
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
  if ((yaml.match(INDICATORS)?.length ?? 0) > MAX_INDICATORS)
    throw invalid(path, `its front matter has more than ${MAX_INDICATORS} line ends and indicators of YAML`)
  // Imported only if there is a skill, because loading it takes 20 ms.
  const { parse } = await import('yaml')
  let parsed: unknown
  try {
    parsed = parse(yaml, { maxAliasCount: MAX_ALIASES, prettyErrors: true, logLevel: 'error' })
  } catch (error) {
    throw invalid(path, `its front matter is not YAML: ${messageOf(error)}`)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw invalid(path, 'its front matter is not a mapping of keys to values')
  return parsed as Record<string, unknown>
}

function invalid(path: string, problem: string): SandglassError {
  return new SandglassError('invalid_request', `${formatPath(path)}: ${problem}`)
}
