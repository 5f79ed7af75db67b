// The config.json of a decoder's folder (transformers' LlamaConfig and its relatives), read and
// checked. Settings that the family does not build are refused by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thimble {

struct DecoderConfig {
  std::string type;  // "llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma"
  int64_t layers = 0, width = 0, inner = 0, vocabulary = 0;
  int64_t heads = 0, groups = 0, head_size = 0;
  int64_t longest = 0;  // positions that it was trained for
  double epsilon = 1e-6;
  double base = 10000;                     // of rotary positions
  std::vector<double> frequency_divisors;  // of each pair of a head, by its scaling; empty: ones
  std::string act;                         // of the gate: as `gated` has it
  int64_t padding = -1;                    // a token whose embedding is not trained; -1: none
  bool tied = false;
  bool qkv_bias = false, out_bias = false, inner_bias = false;
  bool head_norms = false;        // of queries and keys, each head by itself
  bool scales_plus_one = false;   // norms scale by 1 + weight, embeddings by sqrt(width)
  std::vector<bool> turned = {};  // by layer: it has rotary positions; empty: all
  std::string weights;            // the file that has them, or the index of several
};

// UserError naming the file and what is wrong with it.
DecoderConfig read_decoder(const std::string& folder);

}  // namespace thimble
