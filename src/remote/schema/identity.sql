-- Who somebody is, and what the roles may do. Everything else builds on this.
--
-- `@vector@` stands for the schema of pgvector. Every function has its search path pinned to
-- `pg_catalog, pg_temp` and names everything else in full, so that no table, function or operator
-- of a caller can stand in the place of ours.

create schema memctl;
revoke all on schema memctl from public;

-- What has been applied. A file whose checksum has changed since is refused.
create table memctl.migrations (
  version integer primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default now()
);

-- Roles belong to the whole server: another database of it may have made them before, or be making
-- them right now.
do $$
declare
  wanted name;
begin
  foreach wanted in array array['memctl_user', 'memctl_definer']::name[] loop
    begin
      if not exists (select from pg_catalog.pg_roles where rolname = wanted) then
        execute format('create role %I nologin', wanted);
      end if;
    exception when duplicate_object or unique_violation then null;
    end;
    if exists (
      select from pg_catalog.pg_roles
      where rolname = wanted and (rolsuper or rolbypassrls or rolcreaterole or rolcanlogin)
    ) then
      raise exception 'the role "%" exists with rights that it must not have', wanted;
    end if;
  end loop;
end
$$;
-- memctl_user: what every login of ours is a member of. It owns nothing.
-- memctl_definer: owns the few functions that run with other rights than their caller's. Nobody is a
-- member, it cannot log in, and it sees only what its policies name; so none of our functions runs
-- with the rights of a superuser.
grant usage on schema memctl to memctl_user, memctl_definer;

-- Plain PostgreSQL has no `auth`; Supabase's own stays as it is.
do $$
begin
  if to_regnamespace('auth') is null then
    create schema auth;
    revoke all on schema auth from public;
    create table auth.users (
      id uuid primary key default gen_random_uuid(),
      created_at timestamptz not null default now()
    );
    alter table auth.users enable row level security, force row level security;
    create policy "the administrator keeps the users" on auth.users to current_user
      using (true) with check (true);
    grant usage on schema auth to memctl_user;
  elsif not exists (
    select from pg_catalog.pg_attribute
    where attrelid = to_regclass('auth.users') and attname = 'id' and atttypid = 'uuid'::regtype
  ) then
    raise exception 'there is a schema "auth" without a table "auth.users" with an "id" of the type uuid';
  end if;
end
$$;

-- Which user a login role is. Only the administrator writes it.
--
-- A login is a role, and not only its name: a role of that name that was made later is another one, and
-- nobody. After a database was restored on another server: update memctl.logins set role_name = role_name.
create table memctl.logins (
  role_name name primary key,
  user_id uuid not null references auth.users (id) on delete cascade,
  created_at timestamptz not null default now(),
  role_oid oid
);
create function memctl.bind_login() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  new.role_oid := to_regrole(quote_ident(new.role_name));
  return new;
end
$$;
create trigger memctl_bind_login before insert or update on memctl.logins
  for each row execute function memctl.bind_login();

-- The session roles that verify tokens before they pass the claims on. Whoever holds a database
-- password can write any setting, so `request.jwt.claims` counts for these and for nobody else. On
-- Supabase they are PostgREST's and that of its realtime service, a superuser in any case.
create table memctl.token_roles (role_name name primary key);
insert into memctl.token_roles
  select rolname from pg_catalog.pg_roles where rolname in ('authenticator', 'supabase_admin');

-- Who has a role beyond that of a user: `admin`.
create table memctl.roles (
  user_id uuid not null references auth.users (id) on delete cascade,
  role text not null check (role in ('admin')),
  primary key (user_id, role)
);

-- Reads of other people's memory by an administrator (seed: "admin access logged separately").
create table memctl.admin_reads (
  id bigint generated always as identity primary key,
  user_id uuid not null,
  session_role name not null,
  reason text not null check (length(reason) between 8 and 1000),
  opened_at timestamptz not null default clock_timestamp(),
  until timestamptz not null,
  transaction_id xid8 not null default pg_current_xact_id()
);

-- One row a user, held by whoever writes until the end of the transaction: the numbers of a user's
-- changes then become visible in their order, and a reader who asks for "all after n" misses none.
create table memctl.clocks (
  user_id uuid primary key,
  writes bigint not null default 1
);
create sequence memctl.changes;
grant usage on sequence memctl.changes to memctl_user;

do $$
declare
  name text;
begin
  foreach name in array array['logins', 'token_roles', 'roles', 'admin_reads', 'clocks', 'migrations'] loop
    execute format('alter table memctl.%I enable row level security, force row level security', name);
    execute format('create policy "the administrator keeps it" on memctl.%I to current_user using (true) with check (true)', name);
  end loop;
end
$$;
create policy "everybody knows the version" on memctl.migrations for select to memctl_user using (true);
grant select on memctl.migrations to memctl_user;

create policy "identity reads it" on memctl.logins for select to memctl_definer using (true);
create policy "identity reads it" on memctl.token_roles for select to memctl_definer using (true);
create policy "identity reads it" on memctl.roles for select to memctl_definer using (true);
create policy "the log of reads" on memctl.admin_reads for select to memctl_definer using (true);
create policy "the log of reads grows" on memctl.admin_reads for insert to memctl_definer with check (true);
create policy "writers take their turn" on memctl.clocks to memctl_definer using (true) with check (true);
grant select on memctl.logins, memctl.token_roles, memctl.roles to memctl_definer;
grant select, insert on memctl.admin_reads to memctl_definer;
grant select, insert, update on memctl.clocks to memctl_definer;

-- The one place that says who somebody is; the policies use nothing else. `session_user` is the role
-- that gave a password, and neither `set role` nor a definer function changes it.
--
-- `memctl.probe` makes a session nobody in particular: a user without rows, and without a way to have
-- some. It can only take rights away; the self-test looks at the tables through it.
create function memctl.current_user_id() returns uuid
language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  found_id uuid;
  claimed text;
begin
  if current_setting('memctl.probe', true) = 'on' then
    return '00000000-0000-4000-8000-000000000000';
  end if;
  select l.user_id into found_id from memctl.logins l
    where l.role_name = session_user and l.role_oid = to_regrole(quote_ident(session_user));
  if found_id is not null then
    return found_id;
  end if;
  if not exists (select from memctl.token_roles t where t.role_name = session_user) then
    return null;
  end if;
  -- Claims that are no JSON are an error, and an error shows no row.
  claimed := nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub';
  if claimed ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    return claimed::uuid;
  end if;
  return null;
end
$$;

-- Which copy of a workspace shares under its name. Two copies under one name would each take what the
-- other has for removed.
--
-- Names are checked by their characters and length. A regular expression that counts to 63 has a state for
-- each number, and PostgreSQL builds the states anew for each row: half of what it took to write one.
create table memctl.origins (
  user_id uuid not null default memctl.current_user_id() references auth.users (id) on delete cascade,
  origin text not null check (origin ~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' and length(origin) <= 64),
  replica text not null check (replica ~ '^[A-Za-z0-9._-]{1,64}$'),
  claimed_at timestamptz not null default now(),
  -- The key under which a memory that lies here hashes what was removed; every copy needs the same. Null
  -- where a workspace only shares what lies in its own files.
  tombstone_key text check (length(tombstone_key) between 16 and 200),
  primary key (user_id, origin)
);
alter table memctl.origins enable row level security, force row level security;
create policy "users keep their own" on memctl.origins
  using (user_id = (select memctl.current_user_id()))
  with check (user_id = (select memctl.current_user_id()));
-- The lock of the row is the turn of a writer. It takes the right to change something of it.
grant select, insert, update (tombstone_key, claimed_at) on memctl.origins to memctl_user;

-- Whether the caller has a role; of others nothing is told.
create function memctl.has_role(_user_id uuid, _role text) returns boolean
language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from memctl.roles r
    where r.user_id = _user_id and r.role = _role and r.user_id = memctl.current_user_id()
  )
$$;

-- Opens ten minutes in which an administrator sees the memories and logs of all users. The policies
-- honour only a line of *another*, and so committed, transaction: a read that is rolled back has left
-- its line all the same.
create function memctl.open_admin_read(reason text) returns timestamptz
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  ends timestamptz := clock_timestamp() + interval '10 minutes';
begin
  if not memctl.has_role(memctl.current_user_id(), 'admin') then
    raise exception 'only an administrator may read what belongs to others' using errcode = '42501';
  end if;
  if length(reason) not between 8 and 1000 then
    raise exception 'the reason must have 8 to 1000 characters' using errcode = '23514';
  end if;
  insert into memctl.admin_reads (user_id, session_role, reason, until)
    values (memctl.current_user_id(), session_user, open_admin_read.reason, ends);
  return ends;
end
$$;

create function memctl.admin_may_read() returns boolean
language sql stable parallel restricted security definer
set search_path = pg_catalog, pg_temp
as $$
  select memctl.has_role(memctl.current_user_id(), 'admin') and exists (
    select from memctl.admin_reads a
    where a.user_id = memctl.current_user_id()
      and a.until > clock_timestamp()
      and a.transaction_id is distinct from pg_current_xact_id_if_assigned()
  )
$$;

-- `auth.uid()` where Supabase's is absent, so that the queries of others run here too.
do $$
begin
  if to_regprocedure('auth.uid()') is null then
    create function auth.uid() returns uuid
    language sql stable parallel safe
    set search_path = pg_catalog, pg_temp
    as 'select memctl.current_user_id()';
    revoke all on function auth.uid() from public;
    grant execute on function auth.uid() to memctl_user;
  end if;
end
$$;

-- Users for whom a holder may write rows: the name in the tokens (`sub`), and the user in the database.
create table memctl.hosted_users (
  host_id uuid not null references auth.users (id) on delete cascade,
  sub text not null check (length(sub) between 1 and 200),
  user_id uuid not null references auth.users (id) on delete cascade,
  created_at timestamptz not null default now(),
  primary key (host_id, sub)
);
create index on memctl.hosted_users (user_id, host_id);
alter table memctl.hosted_users enable row level security, force row level security;
create policy "the administrator keeps it" on memctl.hosted_users to current_user using (true) with check (true);
create policy "holders are looked up" on memctl.hosted_users for select to memctl_definer using (true);
create policy "holders get users" on memctl.hosted_users for insert to memctl_definer with check (true);
create policy "holders and users know of each other" on memctl.hosted_users for select
  using (host_id = (select memctl.current_user_id()) or user_id = (select memctl.current_user_id()));
revoke all on memctl.hosted_users from public;
grant select, insert on memctl.hosted_users to memctl_definer;

-- A new user of a token needs a row in `auth.users`. Where that table is Supabase's, an administrator may have no
-- right to grant this; users that exist already are found all the same.
do $$
begin
  grant usage on schema auth to memctl_definer;
  grant insert (id) on auth.users to memctl_definer;
  if (select relrowsecurity from pg_catalog.pg_class where oid = 'auth.users'::regclass) then
    create policy "holders add users" on auth.users for insert to memctl_definer with check (true);
  end if;
exception when insufficient_privilege then
  raise notice 'new users cannot be added to auth.users by servers';
end
$$;

-- Whether the caller holds rows of a user. Volatile, so that it sees a user that the same statement has made.
create function memctl.hosts(_user_id uuid) returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from memctl.hosted_users h
    where h.user_id = _user_id and h.host_id = memctl.current_user_id())
$$;

-- The user of a name in the caller's tokens, made at its first use; null for no name.
--
-- Such a user is new, and nobody's but the caller's: a name alone must not give access to the rows of somebody who
-- exists already. Only a login in `memctl.token_roles`, which the administrator trusts to verify tokens, may name
-- an existing user by id.
create function memctl.host_user(sub text) returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  me uuid := memctl.current_user_id();
  found_id uuid;
begin
  if me is null or coalesce(host_user.sub, '') = '' then
    return null;
  end if;
  select h.user_id into found_id from memctl.hosted_users h where h.host_id = me and h.sub = host_user.sub;
  if found_id is not null then
    return found_id;
  end if;
  if host_user.sub ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    if host_user.sub::uuid = me then
      return me;
    end if;
    if exists (select from memctl.token_roles t where t.role_name = session_user) then
      begin
        insert into memctl.hosted_users (host_id, sub, user_id) values (me, host_user.sub, host_user.sub::uuid);
        return host_user.sub::uuid;
      exception when foreign_key_violation then
        -- No user has this id.
        null;
      end;
    end if;
  end if;
  found_id := gen_random_uuid();
  begin
    insert into auth.users (id) values (found_id);
    insert into memctl.hosted_users (host_id, sub, user_id) values (me, host_user.sub, found_id);
  exception when unique_violation then
    -- Another session was first.
    select h.user_id into strict found_id
      from memctl.hosted_users h where h.host_id = me and h.sub = host_user.sub;
  end;
  return found_id;
end
$$;
