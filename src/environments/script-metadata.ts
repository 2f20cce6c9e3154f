import { messageOf, SandglassError } from '../errors/index.ts'

/** The block `# /// script` of a script (PEP 723): the fields that are used. */
export interface ScriptMetadata {
  /** The version specifiers as written; undefined if the block has none. */
  readonly requiresPython: string | undefined
  readonly dependencies: readonly string[]
}

const OPENING = '# /// script'
const CLOSING = '# ///'
const MAX_CHARS = 64 * 1024

/**
 * Reads the block `script` of a script; undefined without one. Takes linear time.
 * @throws SandglassError `dependency_invalid` for a block that is not closed, appears twice or is not TOML.
 */
export async function readScriptMetadata(script: string): Promise<ScriptMetadata | undefined> {
  const block = findBlock(script)
  if (block === undefined) return undefined
  const { parse } = await import('smol-toml')
  if (block.length > MAX_CHARS) throw invalid(`it has more than ${MAX_CHARS} characters`)
  let data: Record<string, unknown>
  try {
    data = parse(block)
  } catch (error) {
    throw invalid(`it is not TOML: ${messageOf(error).split('\n', 1)[0]}`, error)
  }
  const { 'requires-python': requiresPython, dependencies = [] } = data
  if (requiresPython !== undefined && typeof requiresPython !== 'string')
    throw invalid('requires-python must be a string')
  if (!Array.isArray(dependencies) || !dependencies.every((one) => typeof one === 'string')) {
    throw invalid('dependencies must be a list of strings')
  }
  return { requiresPython, dependencies }
}

/** The TOML text of the block; undefined without one. */
function findBlock(script: string): string | undefined {
  if (!script.includes(OPENING)) return undefined
  const lines = script.split(/\r\n|\n|\r/)
  let found: string[] | undefined
  for (let at = 0; at < lines.length; at += 1) {
    if (lines[at]?.trimEnd() !== OPENING) continue
    const end = endOfBlock(lines, at + 1)
    if (end === undefined) throw invalid(`it has no closing line "${CLOSING}"`)
    if (found !== undefined) throw invalid('it occurs twice; keep one')
    found = lines.slice(at + 1, end).map((line) => line.slice(2))
    at = end
  }
  return found?.join('\n')
}

/** The last line `# ///` among the comment lines from here on: PEP 723 lets the content contain such lines. */
function endOfBlock(lines: readonly string[], from: number): number | undefined {
  let end: number | undefined
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at] ?? ''
    if (line !== '#' && !line.startsWith('# ')) break
    if (line.trimEnd() === OPENING) break
    if (line.trimEnd() === CLOSING) end = at
  }
  return end
}

function invalid(reason: string, cause?: unknown): SandglassError {
  return new SandglassError('dependency_invalid', `the block "${OPENING}" of the script cannot be read: ${reason}`, {
    cause,
  })
}
