import { Column, Entity, PrimaryColumn, Unique } from 'typeorm';

@Entity('projects')
@Unique('projects_name_key', ['name'])
export class ProjectEntity {
  @PrimaryColumn({ type: 'uuid', primaryKeyConstraintName: 'projects_pkey' })
  id!: string;

  @Column({ type: 'text' })
  name!: string;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}
