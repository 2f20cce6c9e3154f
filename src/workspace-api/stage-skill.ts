import { readSkill } from '../skills/index.ts'
import { dirDigest } from '../workspace/index.ts'
import { dirSkills } from './constants.ts'
import type { CallOptions } from './contract.ts'
import { type SkillMeta, markUpdated } from './metadata.ts'
import type { OpenWorkspace } from './open-workspaces.ts'
import { stageTree } from './stage-tree.ts'

/** Options of {@link SandglassEngine.stageSkill}. */
export interface SkillOptions extends CallOptions {
  /** False for a copy that scripts can change. Default true. */
  readonly readOnly?: boolean
}

/** Stages a skill, unless one with the same digest is already mounted. */
export async function stageSkill(
  workspace: OpenWorkspace,
  directory: string,
  { readOnly = true, signal }: SkillOptions = {},
): Promise<SkillMeta> {
  const { name } = await readSkill(directory)
  const options = signal === undefined ? {} : { signal }
  const known = Object.hasOwn(workspace.metadata.skills, name) ? workspace.metadata.skills[name] : undefined
  // Only a mounted skill is reused, because scripts may have changed a copy.
  if (known?.mounted === true && readOnly && known.digest === (await dirDigest(directory, options))) return known
  const relPath = `${dirSkills}/${name}`
  const { digest, mountUsed } = await stageTree(workspace, directory, relPath, { readOnly, ...options })
  const skill: SkillMeta = { name, relPath, digest, mounted: mountUsed, stagedAt: new Date() }
  await workspace.update((now) => ({ ...markUpdated(now), skills: { ...now.skills, [name]: skill } }))
  return skill
}
