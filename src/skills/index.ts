export { listSkills, readSkill, type Skill } from './skill.ts'
