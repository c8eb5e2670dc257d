#!lua name=semel_VERSION
-- KEYS[1] = "<prefix>:{<64 hex>}" the record, KEYS[2] = "<prefix>:{<64 hex>}:s" its steps: one hash tag, one slot.
-- Record: st state, fp, f fence, b born, o owner, l lease end, x expiry, a attempts, r result, lb born ':' label, h born ':' history,
-- d runs that ended in doubt, da when the first of them did, q '1' when the last one did, u until when it may act: absent is 0, never, no, and not
-- said. fp and o are raw bytes.
-- Times are µs of the store clock (< 2^53 until 2255), durations are µs.
-- Answers use the words of the protocol. A script is atomic, so the second look of complete, fail, release and renew is part of it.
local function now() local t=redis.call('TIME'); return t[1]*1000000+t[2] end
local function f(n) return string.format('%.0f',n) end
local states={['1']=true,['2']=true,['3']=true,['4']=true,['5']=true}
local function get(k) local v=redis.call('HMGET',k,'st','fp','f','b','o','l','x','a','r','d','q','u','da')
  local c={st=v[1],fp=v[2],f=v[3],b=v[4],o=v[5],l=tonumber(v[6]),x=tonumber(v[7]),a=tonumber(v[8]),r=v[9],
    d=tonumber(v[10] or 0),q=v[11]=='1',u=tonumber(v[12]),da=tonumber(v[13])}
  if c.st and not (states[c.st] and c.fp and c.f and c.b and c.o and c.l and c.x and c.a and c.d) then error({err='CORRUPT the record lacks a field or has no known state'}) end
  return c
end
local function keep(K,st,x)                     -- physical expiry 60 s after the logical one, steps with their record; parked has no end
  if st=='5' then redis.call('PERSIST',K[1]); redis.call('PERSIST',K[2])
  else local t=f(math.ceil(x/1000)+60000); redis.call('PEXPIREAT',K[1],t); redis.call('PEXPIREAT',K[2],t) end
end
local function live(c,n) return c.st and (c.st=='5' or c.x>n) end     -- never trust lazy expiry
local function left(c,n) return f(math.max(c.x-n,0)) end              -- what is left of retention
local function doubt(K,c,n,d,q,u)               -- writes what is known of the last run's effect, where that has changed
  if d~=c.d then
    redis.call('HSET',K[1],'d',f(d))
    if d==0 then redis.call('HDEL',K[1],'da') elseif not c.da then redis.call('HSET',K[1],'da',f(n)) end
  end
  if q~=c.q then redis.call('HSET',K[1],'q',q and '1' or '0') end
  if u~=c.u then if u then redis.call('HSET',K[1],'u',f(u)) else redis.call('HDEL',K[1],'u') end end
end
local function is_old(c,n,age) age=tonumber(age); return age and math.max(n-tonumber(c.b),0)>=age end     -- an empty age is no limit
local function over(c,d,q,n,runs,doubts,doubt_age,age)    -- whether a limit is reached: 0 runs or doubts are none
  runs,doubts=tonumber(runs),tonumber(doubts)
  return (runs>0 and c.a>=runs) or (q and doubts>0 and d>=doubts and math.max(n-(c.da or n),0)>=tonumber(doubt_age)) or (c.a>=5 and is_old(c,n,age))
end
local function claimable(c,probe)               -- when somebody else may run it
  if probe and c.u and (c.q or c.st=='1') then return math.max(c.l,c.u) end
  return c.l
end
local function bump(c,n) return math.max(n,tonumber(c.f)+1) end
local function unchanged(c,n,fence,owner,mine)  -- nothing applied: what became of this run
  if c.st and c.f==fence and c.o==owner then
    if mine[c.st] then return {'already',c.st} end
    if c.st=='2' or c.st=='3' then return {'settled',c.st,left(c,n),c.r or ''} end
    if c.st=='5' then return {'parked'} end
  end
  return {'stale'}
end
local function held(c,fence,owner) return c.st and c.f==fence and c.o==owner and (c.st=='1' or c.st=='5') end
local function clear_reason(K,c)                -- the run is over and left no word: what its record has is of the run before it
  if c.st=='1' and c.r then redis.call('HDEL',K[1],'r') end
end
-- history: superseded attempts, oldest first, each state in_doubt ' ' fence ' ' until ' ' at ' ' #who ' ' #result ':' who result; the latest 8
local function history(K,c)                     -- with its born, because a library of before the history does not know to remove it
  local b,h=string.match(redis.call('HGET',K[1],'h') or '','^(%d+):(.*)$'); return b==c.b and h or ''
end
local function supersede(K,c,n,who)             -- adds how the record stands, before it is written
  local h,starts,at=history(K,c),{},1
  while at<=#h do
    local _,e,w,r=string.find(h,'^%d%d %d+ %d+ %d+ (%d+) (%d+):',at); if not e then error({err='CORRUPT the history makes no sense'}) end
    starts[#starts+1]=at; at=e+1+tonumber(w)+tonumber(r)
  end
  if #starts>=8 then h=string.sub(h,starts[#starts-6]) end
  local r=c.st~='1' and string.sub(c.r or '',1,96) or ''
  local q=(c.q or c.st=='1') and '1' or '0'
  redis.call('HSET',K[1],'h',c.b..':'..h..c.st..q..' '..c.f..' '..f(c.l)..' '..f(n)..' '..#who..' '..#r..':'..who..r)
end
local function claim(K,A)                       -- fp owner lease ttl in_doubt(0 retry, 1 park, 2 probe) max_attempts max_in_doubt doubt_age park_after acts_for label by
  local fp,owner,lease,ttl,acts=A[1],A[2],tonumber(A[3]),tonumber(A[4]),tonumber(A[10])
  local n,c=now(),get(K[1]); local old=live(c,n); local d,q=0,false
  if old then
    if c.fp~=fp then return {'mismatched',c.f} end
    if c.st=='2' or c.st=='3' then return {'replayed',c.f,c.st,left(c,n),c.r or ''} end
    if c.st=='5' then return {'parked',c.f} end
    if c.st=='1' and c.l>n and c.o==owner then return {'granted',c.f,f(c.l),f(c.a),c.b,c.q and '1' or '0'} end   -- my earlier answer was lost
    if c.st=='1' and c.l>n then return {'busy',c.f,f(c.l-n)} end
    local at=claimable(c,A[5]=='2')
    if at>n then return {c.st=='1' and 'busy' or 'not_yet',c.f,f(at-n)} end
    d,q=c.d,c.q
    if c.st=='1' then
      d,q=d+1,true                              -- found lapsed
      if A[5]=='1' or over(c,d,q,n,A[6],A[7],A[8],A[9]) then
        clear_reason(K,c); redis.call('HSET',K[1],'st','5','x',f(math.max(c.x,n+lease+ttl))); doubt(K,c,n,d,q,c.u); keep(K,'5'); return {'parked',c.f}
      end
    end
    supersede(K,c,n,A[12])
  else redis.call('DEL',K[2]); if c.f then redis.call('HDEL',K[1],'lb','h') end end    -- a new incarnation starts without steps, label and history
  local fence=n; if c.f then fence=bump(c,n) end
  local x=n+lease+ttl; if c.x and c.x>x then x=c.x end
  local a=old and c.a+1 or 1; local b=old and c.b or f(fence)
  redis.call('HSET',K[1],'st','1','fp',fp,'f',f(fence),'b',b,'o',owner,'l',f(n+lease),'x',f(x),'a',f(a))
  if c.r and not (old and c.st=='4' and c.q) then redis.call('HDEL',K[1],'r') end    -- else it says why the run before is in doubt
  if not old and A[11]~='' then redis.call('HSET',K[1],'lb',b..':'..A[11]) end
  doubt(K,c,n,d,q,acts and n+acts); keep(K,'1',x); return {'granted',f(fence),f(n+lease),f(a),b,q and '1' or '0'}
end
local function settle(K,c,st,n,delay,ttl,result)
  local l=n+delay; local x=math.max(c.x,l+ttl)
  redis.call('HSET',K[1],'st',st,'l',f(l),'x',f(x),'r',result); keep(K,st,x); return {'applied',st,f(l)}
end
local function complete(K,A)                    -- owner fence ttl result
  local n,c=now(),get(K[1]); if not held(c,A[2],A[1]) then return unchanged(c,n,A[2],A[1],{['2']=true}) end
  return settle(K,c,'2',n,0,tonumber(A[3]),A[4])
end
local function fail(K,A)                        -- owner fence kind(1 final, 2 retryable, 3 in doubt, 4 still in doubt) in_doubt max_attempts max_in_doubt doubt_age park_after delay ttl result
  local n,c=now(),get(K[1]); local kind=A[3]
  if not held(c,A[2],A[1]) then return unchanged(c,n,A[2],A[1],kind=='1' and {['3']=true} or {['4']=true}) end
  local st,d,q,u='4',c.d,c.q,c.u
  if kind=='3' then q=true; if c.st=='1' then d=d+1 end       -- one that is parked was counted when it got there
  elseif kind=='4' then u=nil else q=false end
  if kind=='1' then st='3' elseif (kind=='3' and A[4]=='1') or over(c,d,q,n,A[5],A[6],A[7],A[8]) then st='5' end
  doubt(K,c,n,d,q,u); return settle(K,c,st,n,kind=='1' and 0 or tonumber(A[9]),tonumber(A[10]),A[11])
end
local function stop_now(K,c,n,st,fence,a)       -- -> waiting, claimable at once, or parked; with the retention it had
  local x=math.max(c.x,n+(c.x-c.l))
  redis.call('HSET',K[1],'st',st,'f',fence,'a',f(a),'l',f(n),'x',f(x)); keep(K,st,x); return {'applied',st,f(n),fence,c.b}
end
local function wait_now(K,c,n,fence,a) return stop_now(K,c,n,'4',fence,a) end
local function release(K,A)                     -- owner fence park_after     (only when nothing was sent)
  local n,c=now(),get(K[1]); if not held(c,A[2],A[1]) then return unchanged(c,n,A[2],A[1],{['4']=true}) end
  local old=is_old(c,n,A[3]); if old and c.st=='5' then return {'already','5'} end
  if c.r and not c.q then redis.call('HDEL',K[1],'r') end     -- what was in doubt before it still is, for the same reason
  doubt(K,c,n,c.d,c.q,nil); return stop_now(K,c,n,old and '5' or '4',c.f,math.max(c.a-1,0))
end
local function renew(K,A)                       -- owner fence lease ttl
  local n,c=now(),get(K[1]); if c.st~='1' or c.f~=A[2] or c.o~=A[1] then return unchanged(c,n,A[2],A[1],{}) end
  local lease=tonumber(A[3]); local l=math.max(c.l,n+lease); local x=math.max(c.x,n+lease+tonumber(A[4]))
  redis.call('HSET',K[1],'l',f(l),'x',f(x)); keep(K,'1',x); return {'applied','1',f(l)}
end
local function label(K,c)                       -- with its born, because a library of before the label does not know to remove it
  local b,l=string.match(redis.call('HGET',K[1],'lb') or '','^(%d+):(.*)$'); return b==c.b and l or ''
end
local function look(K,A)                        -- A[1]=='0': without the result, the label and the history
  local n,c=now(),get(K[1]); if not live(c,n) then return {'absent'} end
  return {c.st,c.f,c.o,f(c.a),c.b,f(c.l),f(c.x),c.fp,f(c.d),c.q and '1' or '0',c.u and f(c.u) or '',c.da and f(c.da) or '',A[1]~='0' and c.r,A[1]~='0' and label(K,c),A[1]~='0' and history(K,c)}
end
-- steps: field = name, value = state(1|2) fence ':' result
local function step(K,A)                        -- owner fence name -> record, step state, step fence, step result | nil
  local n,c=now(),get(K[1]); if c.st~='1' or c.f~=A[2] or c.o~=A[1] then return c,nil,nil,nil,unchanged(c,n,A[2],A[1],{}) end
  local v=redis.call('HGET',K[2],A[3]); if not v then return c end
  return c,string.match(v,'^(%d)(%d+):(.*)$')
end
local function step_begin(K,A)
  local c,st,sf,r,no=step(K,A); if no then return no end
  if not st then redis.call('HSET',K[2],A[3],'1'..c.f..':'); keep(K,'1',c.x); return {'run'} end
  if st=='2' then return {'memo',sf,r} end
  return sf==c.f and {'run'} or {'in_doubt',sf}
end
local function step_restart(K,A)                -- policy retry, after in_doubt
  local c,st,sf,r,no=step(K,A); if no then return no end
  if st~='1' then return {'stale'} end
  redis.call('HSET',K[2],A[3],'1'..c.f..':'); keep(K,'1',c.x); return {'applied','1'}
end
local function step_complete(K,A)               -- owner fence name result
  local c,st,sf,r,no=step(K,A); if no then return no end
  if st=='2' then return {'already','1'} end
  if not st or sf~=c.f then return {'stale'} end
  redis.call('HSET',K[2],A[3],'2'..c.f..':'..A[4]); keep(K,'1',c.x); return {'applied','1'}
end
-- operator
local function redrive(K,A)                     -- by
  local n,c=now(),get(K[1]); if not live(c,n) or (c.st~='3' and c.st~='5') then return {'gone',live(c,n) and c.st or '0'} end
  supersede(K,c,n,A[1]); return wait_now(K,c,n,f(bump(c,n)),c.a)
end
local function release_by_operator(K,A)         -- by
  local n,c=now(),get(K[1]); if not live(c,n) or (c.st~='1' and c.st~='4') then return {'gone',live(c,n) and c.st or '0'} end
  supersede(K,c,n,A[1]); clear_reason(K,c); doubt(K,c,n,c.d,c.q or c.st=='1',c.u); return wait_now(K,c,n,f(bump(c,n)),c.a)
end
local function retain(K,A)                      -- ttl: a keeper's, of work that has not succeeded
  local n,c=now(),get(K[1]); local old=live(c,n)
  if not old or c.st=='2' or c.st=='5' then return {'gone',old and c.st or '0'} end
  local x=math.max(c.x,n+tonumber(A[1])); redis.call('HSET',K[1],'x',f(x)); keep(K,c.st,x); return {'applied',c.st}
end
local function resolve(K,A)                     -- decision(2|3|4) result fence or '' by: that very run, parked or lapsed
  local n,c=now(),get(K[1]); local old,one=live(c,n),A[3]~=''
  if not old or (one and c.f~=A[3]) or (c.st~='5' and not (one and c.st=='1')) then return {'gone',old and c.st or '0'} end
  if c.st=='1' and c.l>n then return {'refused'} end
  if A[1]~='2' and A[1]~='3' and A[1]~='4' then return redis.error_reply('ERR decision') end
  supersede(K,c,n,A[4]); clear_reason(K,c); doubt(K,c,n,c.d,false,c.u)
  local fence=f(bump(c,n)); if A[1]=='4' then return wait_now(K,c,n,fence,c.a) end
  redis.call('HSET',K[1],'f',fence); return settle(K,c,A[1],n,0,c.x-c.l,A[2])
end
local function forget(K,A)                      -- ends the incarnation; the husk keeps the fence until it expires physically
  local n,c=now(),get(K[1]); if not live(c,n) then return {'gone','0'} end
  if c.st=='1' and c.l>n then return {'refused'} end
  redis.call('HSET',K[1],'st','4','l',f(n),'x',f(n)); redis.call('HDEL',K[1],'r','lb','h'); redis.call('DEL',K[2]); keep(K,'4',n)
  return {'applied','0',f(n),c.f,c.b}
end
local function below(a,b)                      -- byte by byte, whatever the server's locale says
  for i=1,math.min(#a,#b) do local x,y=string.byte(a,i),string.byte(b,i); if x~=y then return x<y end end
  return #a<#b
end
local function steps(K,A)                       -- how_many bytes: by name, state fence and how its result begins
  local n,c=now(),get(K[1]); local out={}; if not live(c,n) then return out end
  local names=redis.call('HKEYS',K[2]); table.sort(names,below)
  for i=1,math.min(#names,tonumber(A[1])) do
    local st,sf,r=string.match(redis.call('HGET',K[2],names[i]),'^(%d)(%d+):(.*)$'); if not st then error({err='CORRUPT a step makes no sense'}) end
    out[#out+1]={names[i],sf,st=='2' and '1' or '0',string.sub(r,1,tonumber(A[2]))}
  end
  return out
end
-- The index of transport ids. KEYS[1] = "<prefix>:i:{<64 hex>}" of an id's digest: keys by the time they end, in a slot of its own.
-- The ids of a key are KEYS[1] = "<prefix>:{<64 hex>}:i", likewise by the time they end, in the key's slot, for whoever forgets it.
local function indexed(K,x,what)                -- each is kept until the last of its members ends
  redis.call('ZADD',K[1],'GT',f(x),what); local last=redis.call('ZRANGE',K[1],-1,-1,'WITHSCORES')
  redis.call('PEXPIREAT',K[1],f(math.ceil(tonumber(last[2])/1000)))
end
local function index(K,A)                       -- keep key, or keep ids
  local n=now(); for _,old in ipairs(redis.call('ZRANGE',K[1],'-inf',f(n),'BYSCORE','LIMIT',0,64)) do redis.call('ZREM',K[1],old) end
  for i=2,#A do indexed(K,n+tonumber(A[1]),A[i]) end
  return {'applied'}
end
local function find(K,A)                        -- how_many
  local keys=redis.call('ZRANGE',K[1],'('..f(now()),'+inf','BYSCORE'); table.sort(keys,below); local out={}
  for i=1,math.min(#keys,tonumber(A[1])) do out[i]=keys[i] end; return out
end
local function index_ids(K,A) local ids=redis.call('ZRANGE',K[1],0,-1); redis.call('DEL',K[1]); return ids end
local function unindex(K,A) redis.call('ZREM',K[1],A[1]); return {'applied'} end    -- key
-- letters: KEYS[1] = "<prefix>:{letters}:h" id -> delivery, 'h'..id -> head; KEYS[2] = "<prefix>:{letters}:z" id by time;
-- KEYS[3] = "<prefix>:{letters}:t:<id>" the tombstone of a closed letter: fence ':' expiry. One slot for all of them.
-- The head is a field of its own, so that a list does not read the deliveries: reason redriven alarmed fence retention size
-- key(hex or '-') route.
local function letter_head(K,id)
  local v=redis.call('HGET',K[1],'h'..id); if not v then return nil end
  local reason,redriven,alarmed,fence,ttl,size,key,route=string.match(v,'^(%d) ([01]) ([01]) (%d+) (%d+) (%d+) (%S+) (.*)$')
  if not reason then error({err='CORRUPT a letter has a bad head'}) end
  return {reason=reason,redriven=redriven,alarmed=alarmed,f=fence,ttl=ttl,size=size,key=key,route=route}
end
local function letter_keep(K,id,h)
  redis.call('HSET',K[1],'h'..id,table.concat({h.reason,h.redriven,h.alarmed,h.f,h.ttl,h.size,h.key,h.route},' '))
end
local function letter_put(K,A)                  -- id key(hex or '-') route reason fence retention redriven alarmed delivery
  local id,n=A[1],now(); local old=letter_head(K,id)
  if old then
    if tonumber(A[5])>tonumber(old.f) then old.f=A[5]; letter_keep(K,id,old) end
    return {'already'}
  end
  local closed=redis.call('GET',K[3])
  if closed then
    local fence,x=string.match(closed,'^(%d+):(%d+)$'); if not fence then error({err='CORRUPT a letter has a bad tombstone'}) end
    if tonumber(x)>n and tonumber(A[5])<=tonumber(fence) then return {'closed'} end     -- never trust lazy expiry
    redis.call('DEL',K[3])
  end
  redis.call('HSET',K[1],id,A[9])
  letter_keep(K,id,{reason=A[4],redriven=A[7],alarmed=A[8],f=A[5],ttl=A[6],size=f(#A[9]),key=A[2],route=A[3]})
  local last=redis.call('ZRANGE',K[2],-1,-1,'WITHSCORES'); if last[2] then n=math.max(n,tonumber(last[2])+1) end
  redis.call('ZADD',K[2],f(n),id); return {'applied',f(n)}            -- scores are distinct, so a score is a cursor
end
local function letter_list(K,A)                 -- cursor(start '0') limit
  local ids=redis.call('ZRANGE',K[2],'('..A[1],'+inf','BYSCORE','LIMIT',0,A[2],'WITHSCORES'); local out={}
  for i=1,#ids,2 do
    local h=letter_head(K,ids[i]); if not h then error({err='CORRUPT a letter lacks its head'}) end
    out[#out+1]={ids[i],h.key,h.route,h.reason,h.f,h.redriven,h.alarmed,h.size,f(tonumber(ids[i+1]))}
  end
  return out
end
local function letter_get(K,A) local d=redis.call('HGET',K[1],A[1]); if not d then return {'gone'} end
  local h=letter_head(K,A[1]); if not h then error({err='CORRUPT a letter lacks its head'}) end
  return {'letter',h.key,h.route,h.reason,h.f,h.ttl,h.redriven,h.alarmed,d} end
local function letter_mark(K,A)                 -- id mark(1 redriven, 2 alarmed, 3 closed)
  local id=A[1]; local h=letter_head(K,id); if not h then return {'gone'} end
  if A[2]=='1' then h.redriven='1'; letter_keep(K,id,h); return {'applied'} end
  if A[2]=='2' then h.alarmed='1'; letter_keep(K,id,h); return {'applied'} end
  if A[2]~='3' then return redis.error_reply('ERR mark') end
  local x=now()+tonumber(h.ttl)
  redis.call('ZREM',K[2],id); redis.call('HDEL',K[1],id,'h'..id)
  redis.call('SET',K[3],h.f..':'..f(x),'PXAT',f(math.ceil(x/1000)+1)); return {'applied'}
end
-- KEYS[1] = "<prefix>:wait". A write that WAIT can wait for, after everything the calls before it read or wrote.
local function touch(K,A) redis.call('SET',K[1],'1'); return {'applied'} end
-- KEYS[1] = "<prefix>:ready". Whether a new record would be taken: out of memory it is not, as a claim is not.
local function ready(K,A) redis.call('SET',K[1],'1'); return {'applied'} end
-- A server without memory to spare takes nothing new; it still reads, and records how the runs end that it has granted ('allow-oom').
-- Nothing is 'no-writes': a demoted master would answer from what it had.
local function register(name,callback,flag) redis.register_function{function_name='semel_VERSION_'..name,callback=callback,flags={flag}} end
register('claim',claim)
register('complete',complete,'allow-oom')
register('fail',fail,'allow-oom')
register('release',release,'allow-oom')
register('renew',renew,'allow-oom')
register('look',look,'allow-oom')
register('step_begin',step_begin)
register('step_restart',step_restart,'allow-oom')
register('step_complete',step_complete,'allow-oom')
register('redrive',redrive,'allow-oom')
register('retain',retain,'allow-oom')
register('release_by_operator',release_by_operator,'allow-oom')
register('resolve',resolve,'allow-oom')
register('forget',forget,'allow-oom')
register('steps',steps,'allow-oom')
register('index',index)
register('find',find,'allow-oom')
register('index_ids',index_ids,'allow-oom')
register('unindex',unindex,'allow-oom')
register('letter_put',letter_put)
register('letter_list',letter_list,'allow-oom')
register('letter_get',letter_get,'allow-oom')
register('letter_mark',letter_mark,'allow-oom')
register('touch',touch,'allow-oom')
register('ready',ready)
