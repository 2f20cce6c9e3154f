import { ENGINE_NAMES } from '../../src/engines/index.ts'
import { ExecutionMode } from '../../src/executor/index.ts'
import { DEFAULT_LIMITS, REQUIREMENTS } from '../../src/sandbox/index.ts'
import { Declarations, type Member } from './declarations.ts'
import type { GeneratedSection } from './section.ts'
import { code, markdownTable } from './table.ts'

/** The interfaces of docs/options.md; each has a heading there. */
const INTERFACES = [
  'SandglassOptions',
  'ResourceLimits',
  'RunOptions',
  'ToolLimits',
  'CheckOptions',
  'AsToolOptions',
  'WorkspaceOptions',
  'WorkspaceSessionOptions',
  'CellOptions',
  'SolveOptions',
  'SolveBudget',
  'LocalEngineOptions',
  'DockerEngineOptions',
  'DockerTls',
  'HostResource',
  'PyodideEngineOptions',
] as const

/** One section of docs/options.md for each interface, and the values of `require`. The sources are read once, at the first. */
export function optionSections(): GeneratedSection[] {
  let read: Declarations | undefined
  const declarations = (): Declarations =>
    (read ??= Declarations.of('src', new Map([['EngineOptions', engineMembers()]])))
  return [
    ...INTERFACES.map((name) => ({ page: 'docs/options.md', name, text: () => optionsText(declarations(), name) })),
    { page: 'docs/options.md', name: 'requirements', text: () => REQUIREMENTS.map(code).join(', ') },
  ]
}

/**
 * The table of an interface's members. The options that `asTool` shares with `run` are one sentence.
 * @throws Error for a member without a doc comment.
 */
export function optionsText(declarations: Declarations, name: string): string {
  const members = declarations.membersOf(name)
  if (name !== 'AsToolOptions') return memberTable(declarations, name, members)
  const shared = declarations.membersOf('RunOptions').map((member) => member.name)
  const names = members.map((member) => member.name)
  const own = members.filter((member) => !shared.includes(member.name))
  const missing = shared.filter((option) => !names.includes(option)).map(code)
  return [
    memberTable(declarations, name, own),
    '',
    `It also takes the options of [\`RunOptions\`](#runoptions), except ${missing.join(', ')}.`,
  ].join('\n')
}

function memberTable(declarations: Declarations, owner: string, members: readonly Member[]): string {
  const rows = members.map((member) => {
    if (member.comment === '') throw new Error(`${owner}.${member.name} has no doc comment`)
    const name = `${code(member.name)}${member.required ? ', required' : ''}`
    const limit = owner === 'ResourceLimits' && !member.comment.includes('Default ') ? defaultLimit(member.name) : ''
    return [name, typeCell(declarations, member.type), `${member.comment}${limit}`]
  })
  return markdownTable(['option', 'type', 'meaning'], rows)
}

/** Formats a type: a link if the page has its table, the values of a short union, otherwise code. */
function typeCell(declarations: Declarations, type: string): string {
  const linked = INTERFACES.find((name) => type === name)
  if (linked !== undefined) return `[${code(linked)}](#${linked.toLowerCase()})`
  if (type === 'ExecutionMode') return code(unionOf(Object.values(ExecutionMode)))
  if (/\bEngineName\b/.test(type)) return code(type.replace(/\bEngineName\b/, unionOf(ENGINE_NAMES)))
  const [, excluded, left] = /^Exclude<(\w+), ('[\w-]+')>$/.exec(type) ?? []
  const alias = declarations.aliasOf(excluded ?? type)
  if (alias === undefined || !/^'[\w-]+'( \| '[\w-]+')*$/.test(alias)) return code(type)
  return code(
    alias
      .split(' | ')
      .filter((value) => value !== left)
      .join(' | '),
  )
}

/** `EngineOptions` is mapped from the table of engines: each has its options under its name. */
function engineMembers(): Member[] {
  return ENGINE_NAMES.map((name) => ({
    name,
    required: false,
    type: `${name.charAt(0).toUpperCase()}${name.slice(1)}EngineOptions`,
    comment: `Options of the engine \`${name}\`.`,
  }))
}

function unionOf(values: readonly string[]): string {
  return values.map((value) => `'${value}'`).join(' | ')
}

function defaultLimit(name: string): string {
  const value = new Map<string, number>(Object.entries(DEFAULT_LIMITS)).get(name)
  if (value === undefined) throw new Error(`there is no default for the limit ${name}`)
  return ` Default ${name.endsWith('Bytes') ? `${value / 1024 ** 2} MiB` : value}.`
}
