-- Users of a server for whom a memory is switched off. Every copy of the memory refuses their requests.

create table memctl.disabled_users (
  held_by uuid not null default memctl.current_user_id() references auth.users (id) on delete cascade,
  origin text not null check (origin ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
  -- The name in the tokens.
  sub text not null check (length(sub) between 1 and 200),
  is_disabled boolean not null,
  changed_at timestamptz not null default now(),
  primary key (held_by, origin, sub)
);
alter table memctl.disabled_users enable row level security, force row level security;
create policy "holders read it" on memctl.disabled_users for select
  using (held_by = (select memctl.current_user_id()));
create policy "holders add it" on memctl.disabled_users for insert
  with check (held_by = (select memctl.current_user_id()));
create policy "holders change it" on memctl.disabled_users for update
  using (held_by = (select memctl.current_user_id()))
  with check (held_by = (select memctl.current_user_id()));
create policy "users know of themselves" on memctl.disabled_users for select
  using (exists (
    select from memctl.hosted_users h
    where h.host_id = disabled_users.held_by and h.user_id = (select memctl.current_user_id())
      and h.sub = disabled_users.sub));
revoke all on memctl.disabled_users from public;
grant select, insert, update (is_disabled, changed_at) on memctl.disabled_users to memctl_user;

-- Copies of the memory fetch the list, as after a write of records.
create trigger memctl_take_turn before insert or update on memctl.disabled_users
  for each statement execute function memctl.take_turn();

select memctl.hide_statistics();
