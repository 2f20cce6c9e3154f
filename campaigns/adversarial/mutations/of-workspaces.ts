import type { Mutation } from './mutation.ts'

const HARNESS = 'harness/sandglass_harness'

/** The defences of workspaces, of stores in use, and of packages. */
export const WORKSPACE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'domains-of-activities',
    defence: 'each activity of a workspace is in a Landlock domain of its own',
    instead: 'they are in none, as on a kernel without it',
    patches: [
      {
        file: `${HARNESS}/script/keeper.py`,
        from: 'self._has_domain = landlock.scope_signals() and ',
        to: 'self._has_domain = False and ',
      },
    ],
    selected: [{ suite: 'defences', titles: ['another activity of its workspace'] }],
    quick: [{ suite: 'defences', titles: ['another activity of its workspace'] }],
  },
  {
    name: 'environment-of-programs',
    defence: 'scripts and programs get the variables of the sandbox alone',
    instead: 'they inherit those with which the harness was started',
    doubled: 'the environment of the harness is empty',
    patches: [
      {
        file: `${HARNESS}/start.py`,
        from: '        os.environ.clear()  # set by the launcher and the interpreter\n',
        to: '',
      },
      { file: 'src/engines/local/spawn-launcher.ts', from: ' env: {},\n', to: ' env: process.env,\n' },
    ],
    selected: [{ suite: 'workspace-programs', titles: ['the environment of the host is not inherited'] }],
    quick: [],
  },
  {
    name: 'links-in-workspaces',
    defence: 'the host reads and writes files of a workspace by descriptors, and follows no link on the way',
    instead: 'a link to a directory is entered, and a link to a file is read',
    doubled:
      'where the kernel follows links in spite of the flag, which a trial tells, an opened directory is compared with its name',
    patches: [
      { file: `${HARNESS}/broker/scratch.py`, from: 'os.O_DIRECTORY | os.O_NOFOLLOW', to: 'os.O_DIRECTORY' },
      { file: `${HARNESS}/broker/scratch.py`, from: 'FOLLOWS_LINKS = _follows_links()', to: 'FOLLOWS_LINKS = False' },
      {
        file: `${HARNESS}/broker/paths.py`,
        from: 'READABLE = os.O_RDONLY | os.O_NOFOLLOW',
        to: 'READABLE = os.O_RDONLY',
      },
    ],
    selected: [{ suite: 'workspace-files', titles: ['a path that leaves the workspace', 'what a link leads to'] }],
    quick: [],
  },
  {
    name: 'output-window',
    defence: 'a sandbox that sends more output of an activity than its window is destroyed',
    instead: 'the host keeps whatever arrives',
    patches: [
      { file: 'src/workspace/activity.ts', from: 'return room >= -slack', to: 'return room >= -slack || bytes >= 0' },
    ],
    selected: [{ suite: 'workspace-link', titles: ['sends more than its window'] }],
    quick: [],
  },
  {
    name: 'lease-of-workspaces',
    defence: 'an owner of a persisted workspace that another one has followed cannot write to the store',
    instead: 'it takes the state that it finds for its own',
    patches: [
      {
        file: 'src/persistence/lease.ts',
        from: 'if (present.record.owner?.token !== this.#token || present.tag === undefined) break',
        to: 'if (present.tag === undefined) break',
      },
    ],
    selected: [{ suite: 'lease', titles: ['cannot write again'] }],
    quick: [],
  },
  {
    name: 'conditional-records',
    defence: 'the record of a persisted workspace is written on the condition that it is the one that was read',
    instead: 'it is written over whatever is there',
    doubled: 'a store that takes a second write on the same state is refused',
    patches: [
      {
        file: 'src/persistence/record.ts',
        from: '  return store.write(RECORDS_AREA, digestOf(id), JSON.stringify(onDisk), tag)\n',
        to:
          '  const key = digestOf(id)\n' +
          '  const force = async (): Promise<string | undefined> =>\n' +
          '    (await store.write(RECORDS_AREA, key, JSON.stringify(onDisk), (await store.read(RECORDS_AREA, key))?.tag ?? tag)) ?? force()\n' +
          '  return force()\n',
      },
      { file: 'src/persistence/lease.ts', from: '          await refuseUnconditional(store, next, tag)\n', to: '' },
    ],
    selected: [{ suite: 'lease', titles: ['who ask at once', 'cannot write again'] }],
    quick: [],
  },
  {
    name: 'unsettled-files',
    defence:
      'a file that changed within 20 ms of a walk is read again at the next one, for its time of change may come twice',
    instead: 'its time of change is believed at once',
    patches: [
      { file: `${HARNESS}/broker/files.py`, from: 'UNSETTLED_NS = 20_000_000\n', to: 'UNSETTLED_NS = -(1 << 62)\n' },
    ],
    selected: [{ suite: 'workspace-persist', titles: ['within 20 ms of a walk'] }],
    quick: [],
  },
  {
    name: 'allowed-dependencies',
    defence: '`allow` is asked for every package of a lock to which a script led',
    instead: 'it is asked only for those that the script names, and not for what they need',
    patches: [
      {
        file: 'src/environments/builder.ts',
        from: 'const refused = refusedOf(packages, allow)',
        to: 'const named = packages.filter(({ name }) => request.requirements.some((one) => one.name === name))\n    const refused = refusedOf(named, allow)',
      },
    ],
    selected: [{ suite: 'named-by-scripts', titles: ['every package of the lock is checked'] }],
    quick: [],
  },
  {
    name: 'hashes-of-wheels',
    defence: 'a wheel is installed only with the SHA-256 that its lock names',
    instead: 'wheels are installed by a lock without hashes',
    patches: [
      {
        file: 'src/environments/installer.ts',
        from: "'pylock.toml'), lock.text)",
        to: "'pylock.toml'), lock.text.replaceAll(/hashes = \\{[^}]*\\}/g, 'hashes = {}'))",
      },
    ],
    selected: [{ suite: 'index-faults', titles: ['another SHA-256 than promised'] }],
    quick: [],
  },
]
