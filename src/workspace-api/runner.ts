import { SandglassError } from '../errors/index.ts'
import type { ExecOptions } from '../workspace/index.ts'
import { formatValue } from '../support/index.ts'
import {
  dirOut,
  dirRuns,
  dirSkills,
  dirWork,
  envOutputDir,
  envRunDir,
  envSkillName,
  envSkillsDir,
  envWorkDir,
} from './constants.ts'
import type { CallOptions, InteractiveProgramRunner, ProgramRunner, Workspace } from './contract.ts'
import { normalizeCwd } from './globs.ts'
import { invalid } from './invalid.ts'
import type { OpenWorkspace, OpenWorkspaces } from './open-workspaces.ts'
import { OpenSession } from './open-session.ts'
import type {
  InteractiveProgramSpec,
  ProgramSession,
  ResourceLimits,
  RunProgramSpec,
  RunResult,
} from './programs-contract.ts'

const MiB = 1024 * 1024
/** The minimum of `limits.cpus`, in percent. */
const MIN_CPU_PERCENT = 5

/** Runs programs in workspaces of a Sandglass. */
export class SandglassRunner implements ProgramRunner, InteractiveProgramRunner {
  readonly #open: OpenWorkspaces

  constructor(open: OpenWorkspaces) {
    this.#open = open
  }

  async runProgram(ws: Workspace, spec: RunProgramSpec, { signal }: CallOptions = {}): Promise<RunResult> {
    const workspace = this.#open.of(ws)
    const cwd = normalizeCwd(spec.cwd ?? '')
    const options = await optionsOf(workspace, spec, cwd, signal)
    const stdin = spec.stdin === undefined ? {} : { stdin: spec.stdin }
    const result = await workspace.sandbox.exec(spec.cmd, spec.args, { ...options, ...stdin })
    const { stdout, stderr, exitCode, durationMs, timedOut } = result
    return { stdout, stderr, exitCode, durationMs, timedOut }
  }

  async startProgram(
    ws: Workspace,
    spec: InteractiveProgramSpec,
    { signal }: CallOptions = {},
  ): Promise<ProgramSession> {
    const workspace = this.#open.of(ws)
    const options = await optionsOf(workspace, spec, normalizeCwd(spec.cwd ?? ''), signal)
    const tty = spec.tty === true ? { tty: true as const } : {}
    const program = await workspace.sandbox.start(spec.cmd, spec.args, { ...options, ...tty })
    // The input stays open after the text.
    if (spec.stdin !== undefined && spec.stdin !== '') await program.write(spec.stdin)
    return new OpenSession(program)
  }
}

type ProgramOptions = Pick<ExecOptions, 'env' | 'cwd' | 'timeoutSec' | 'limits' | 'signal'>

async function optionsOf(
  workspace: OpenWorkspace,
  { env, timeoutMs = 0, limits }: RunProgramSpec,
  cwd: string,
  signal: AbortSignal | undefined,
): Promise<ProgramOptions> {
  if (!Number.isFinite(timeoutMs) || timeoutMs < 0)
    throw invalid('timeoutMs', `${formatValue(timeoutMs)} is not a number of milliseconds`)
  const runDirectory = `${dirRuns}/${crypto.randomUUID()}`
  await workspace.sandbox.makeDirectory(runDirectory, signal === undefined ? {} : { signal })
  const skill = skillAt(workspace, cwd)
  return {
    cwd: mountPathOf(workspace, cwd),
    env: {
      [envSkillsDir]: skillsDirectory(workspace),
      [envWorkDir]: `${workspace.path}/${dirWork}`,
      [envOutputDir]: `${workspace.path}/${dirOut}`,
      [envRunDir]: `${workspace.path}/${runDirectory}`,
      ...(skill === undefined ? {} : { [envSkillName]: skill }),
      ...env,
    },
    ...(timeoutMs === 0 ? {} : { timeoutSec: timeoutMs / 1000 }),
    ...(limits === undefined ? {} : { limits: limitsOf(limits) }),
    ...(signal === undefined ? {} : { signal }),
  }
}

/** @throws SandglassError `limit_not_enforceable` */
function limitsOf({ cpuPercent = 0, memoryMB = 0, maxPIDs = 0 }: ResourceLimits): NonNullable<ExecOptions['limits']> {
  for (const [name, value] of Object.entries({ cpuPercent, memoryMB, maxPIDs }))
    if (!Number.isSafeInteger(value) || value < 0)
      throw invalid(`limits.${name}`, `${formatValue(value)} is not a whole number from 0`)
  if (cpuPercent > 0 && cpuPercent < MIN_CPU_PERCENT)
    throw new SandglassError(
      'limit_not_enforceable',
      `limits.cpuPercent: ${cpuPercent} is too little for the sandbox to serve the program; the minimum is ${MIN_CPU_PERCENT}`,
    )
  return {
    ...(cpuPercent === 0 ? {} : { cpus: cpuPercent / 100 }),
    ...(memoryMB === 0 ? {} : { memoryBytes: memoryMB * MiB }),
    ...(maxPIDs === 0 ? {} : { pids: maxPIDs }),
  }
}

/** The path at which programs use a directory: the mount point of a mounted one, because a script may have replaced its link. */
function mountPathOf(workspace: OpenWorkspace, cwd: string): string {
  for (const [path, place] of workspace.mounted)
    if (cwd === path || cwd.startsWith(`${path}/`)) return `${place}${cwd.slice(path.length)}`
  return cwd
}

/** The directory of all skills: that of the mounts if all are mounted, so that a script cannot replace any. */
function skillsDirectory({ metadata, path, mounted }: OpenWorkspace): string {
  const skills = Object.values(metadata.skills)
  const places = skills.map(({ relPath }) => mounted.get(relPath))
  const areMounted = skills.length > 0 && places.every((place) => place !== undefined)
  return areMounted ? `/inputs/${dirSkills}` : `${path}/${dirSkills}`
}

function skillAt({ metadata }: OpenWorkspace, cwd: string): string | undefined {
  const [directory, name = ''] = cwd.split('/')
  return directory === dirSkills && Object.hasOwn(metadata.skills, name) ? name : undefined
}
