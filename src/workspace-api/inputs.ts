import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative, sep } from 'node:path'
import { artifactServiceFromContext, loadArtifactHelper } from '../artifacts/index.ts'
import { messageOf, SandglassError } from '../errors/index.ts'
import { openFile, pathProblem } from '../executor/index.ts'
import { formatPath, formatValue, refuseUnknown } from '../support/index.ts'
import { dirSkills, dirWork } from './constants.ts'
import type { InputSpec } from './files-contract.ts'
import { copyInside, linkInside } from './inside-scripts.ts'
import { invalid } from './invalid.ts'
import { type InputRecord, pinnedVersion, withRecord } from './metadata.ts'
import type { OpenWorkspace } from './open-workspaces.ts'
import { type InputRef, inputNameOf, parseInputRef } from './refs.ts'
import { stageTree } from './stage-tree.ts'

type Resolution = Pick<InputRecord, 'resolved' | 'version' | 'mode'>

/** Stages inputs of one workspace. */
export class InputStager {
  readonly #workspace: OpenWorkspace
  readonly #hostDirectories: readonly string[]
  readonly #signal: AbortSignal | undefined

  constructor(workspace: OpenWorkspace, hostDirectories: readonly string[], signal: AbortSignal | undefined) {
    this.#workspace = workspace
    this.#hostDirectories = hostDirectories
    this.#signal = signal
  }

  /** @throws SandglassError whose message begins with the source of the input. */
  async stage(spec: InputSpec): Promise<void> {
    refuseUnknown('stageInputs', spec, ['from', 'to', 'mode', 'pin'])
    const { from, to: given = '', mode = 'copy', pin = false } = spec
    if (typeof from !== 'string') throw invalid('from', `${formatValue(from)} is not a string`)
    if (mode !== 'copy' && mode !== 'link') throw invalid('mode', `${formatValue(mode)} is neither copy nor link`)
    const ref = parseInputRef(from)
    const to = checkPath(given === '' ? `${dirWork}/inputs/${inputNameOf(from)}` : given.replace(/\/$/, ''))
    try {
      const found = await this.#stageRef(ref, to, mode === 'link', pin)
      await this.#workspace.update((now) => withRecord(now, 'inputs', { from, to, ...found, timestamp: new Date() }))
    } catch (error) {
      if (!(error instanceof SandglassError)) throw error
      throw new SandglassError(error.code, `${from}: ${error.message}`, { cause: error })
    }
  }

  #stageRef(ref: InputRef, to: string, isLink: boolean, pin: boolean): Promise<Resolution> {
    switch (ref.scheme) {
      case 'artifact':
        return this.#stageArtifact(ref.name, ref.version, to, pin)
      case 'host':
        return this.#stageHostPath(ref.path, to, isLink)
      case 'workspace':
        return this.#stageInside(`${this.#workspace.path}/${ref.path}`, ref.path, to, isLink)
      case 'skill':
        return this.#stageSkillPath(ref.path, to, isLink)
    }
  }

  async #stageArtifact(name: string, given: number | null, to: string, pin: boolean): Promise<Resolution> {
    if (artifactServiceFromContext() === undefined)
      throw invalid('from', 'there is no artifact service here: call this within withArtifactService(service, () => …)')
    const pinned = pin ? pinnedVersion(this.#workspace.metadata.inputs, name, to) : undefined
    const { data, version } = await loadArtifactHelper(name, given ?? pinned)
    await this.#workspace.sandbox.put({ [to]: data }, this.#options)
    return { resolved: name, version, mode: 'copy' }
  }

  async #stageHostPath(path: string, to: string, isLink: boolean): Promise<Resolution> {
    const source = await this.#resolveAllowed(path)
    if ((await stat(source)).isDirectory()) {
      const { mountUsed } = await stageTree(this.#workspace, source, to, {
        readOnly: isLink && this.#workspace.sandbox.engine === 'local',
        noLinks: true,
        ...this.#options,
      })
      return { resolved: source, mode: mountUsed ? 'link' : 'copy' }
    }
    if (!isLink || this.#workspace.sandbox.engine !== 'local') {
      const stream = openFile({ path: to, mode: 0, source: { kind: 'host', hostPath: source, isReal: true } })
      await this.#workspace.sandbox.put({ [to]: { stream: stream as AsyncIterable<Uint8Array> } }, this.#options)
      return { resolved: source, mode: 'copy' }
    }
    const mounted = await this.#workspace.sandbox.addInput(to, source, {
      readOnly: true,
      replace: true,
      noLinks: true,
      ...this.#options,
    })
    await linkInside(this.#workspace, mounted.path, to, this.#signal)
    return { resolved: source, mode: 'link' }
  }

  async #stageSkillPath(path: string, to: string, isLink: boolean): Promise<Resolution> {
    const [name = '', ...rest] = path.split('/')
    const { skills } = this.#workspace.metadata
    const skill = Object.hasOwn(skills, name) ? skills[name] : undefined
    if (skill === undefined)
      throw invalid('from', `there is no skill ${formatValue(name)} in the workspace; stage it with stageSkill`)
    const directory = this.#workspace.mounted.get(skill.relPath) ?? `${this.#workspace.path}/${dirSkills}/${name}`
    return this.#stageInside([directory, ...rest].join('/'), path, to, isLink, directory)
  }

  async #stageInside(
    target: string,
    resolved: string,
    to: string,
    isLink: boolean,
    root: string = this.#workspace.path,
  ): Promise<Resolution> {
    if (isLink) await linkInside(this.#workspace, target, to, this.#signal)
    else await copyInside(this.#workspace, target, to, root, this.#signal)
    return { resolved, mode: isLink ? 'link' : 'copy' }
  }

  /** The real path of a file of the host. @throws SandglassError `mount_refused` if the embedder does not allow it. */
  async #resolveAllowed(path: string): Promise<string> {
    const source = await resolveRealPath(path)
    for (const directory of this.#hostDirectories) {
      const below = relative(await resolveRealPath(directory), source)
      if (below === '' || (below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below))) return source
    }
    const allowed = this.#hostDirectories.map((directory) => formatPath(directory)).join(', ') || 'none'
    throw new SandglassError(
      'mount_refused',
      `${formatPath(path)} is not below one of hostDirectories (${allowed}); add its directory there`,
    )
  }

  get #options(): { signal?: AbortSignal } {
    return this.#signal === undefined ? {} : { signal: this.#signal }
  }
}

/** @throws SandglassError `invalid_request` */
function checkPath(to: string): string {
  const problem = pathProblem(to)
  if (problem === undefined) return to
  throw invalid('to', `${formatValue(to)} is not a path in the workspace: ${problem}`)
}

async function resolveRealPath(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    throw invalid('from', messageOf(error))
  }
}
