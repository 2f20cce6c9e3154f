/** Status of an interactive program that runs and may take more input. */
export const programStatusRunning = 'running'
/** Status of an interactive program that has ended. */
export const programStatusExited = 'exited'

/** Directory of staged skills. */
export const dirSkills = 'skills'
/** Directory of shared intermediate files. */
export const dirWork = 'work'
/** Directory of the working directories of single programs. */
export const dirRuns = 'runs'
/** Directory of files that are collected. */
export const dirOut = 'out'
/** Name of the file with metadata at the root of a workspace. */
export const metaFileName = 'metadata.json'

/** Variable of programs: the path of {@link dirSkills}. */
export const envSkillsDir = 'SKILLS_DIR'
/** Variable of programs: the path of {@link dirWork}. */
export const envWorkDir = 'WORK_DIR'
/** Variable of programs: the path of {@link dirOut}. */
export const envOutputDir = 'OUTPUT_DIR'
/** Variable of programs: a directory below {@link dirRuns} for this program alone. */
export const envRunDir = 'RUN_DIR'
/** Variable of programs whose working directory is in a skill: the name of the skill. */
export const envSkillName = 'SKILL_NAME'
/** Variable of programs: the path of the workspace. */
export const workspaceEnvDirKey = 'WORKSPACE_DIR'

/** Names of the spans; each is a tracing channel of `node:diagnostics_channel` with `sandglass:` before the name. */
export const spanWorkspaceCreate = 'workspace.create'
export const spanWorkspaceCleanup = 'workspace.cleanup'
export const spanWorkspaceStageFiles = 'workspace.stage.files'
export const spanWorkspaceStageDir = 'workspace.stage.dir'
export const spanWorkspaceRun = 'workspace.run'
export const spanWorkspaceCollect = 'workspace.collect'
export const spanWorkspaceInline = 'workspace.inline'

/** Names of the attributes of spans. */
export const attrExecId = 'exec_id'
export const attrPath = 'path'
export const attrCount = 'count'
export const attrPatterns = 'patterns'
export const attrCmd = 'cmd'
export const attrCwd = 'cwd'
export const attrExitCode = 'exit_code'
export const attrTimedOut = 'timed_out'
export const attrHostPath = 'host_path'
export const attrTo = 'to'
export const attrMountUsed = 'mount_used'

/** Mode of files without one. */
export const defaultScriptFileMode = 0o644
/** Mode of executable files. */
export const defaultExecFileMode = 0o755
/** Directory in which blocks of code are written and run. */
export const inlineSourceDir = 'src'
