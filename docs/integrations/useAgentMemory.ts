import { supabase } from '@/integrations/supabase/client';

export function useAgentMemory() {
  const readMemory = async (query: string, memoryType?: string) => {
    const { data, error } = await supabase.functions.invoke('agent-memory-read', {
      body: { query, memory_type: memoryType },
    });

    if (error) throw error;
    return data.results;
  };

  const writeMemory = async (content: string, memoryType: string, metadata?: any) => {
    const { data, error } = await supabase.functions.invoke('agent-memory-write', {
      body: { content, memory_type: memoryType, metadata },
    });

    if (error) throw error;
    return data.memory;
  };

  return { readMemory, writeMemory };
}
