// Adapters as PEFT keeps them: a folder with adapter_config.json and adapter_model.safetensors,
// whose tensors are called base_model.model.MODULE.lora_A.weight, MODULE as the base's program
// calls it.
#pragma once

#include <optional>
#include <string>

#include "execute/program.h"
#include "model/model.h"
#include "transform/fine_tuning.h"

namespace thimble {

bool is_adapter_folder(const std::string& path);

// UserError where the model has no adapters.
void save_adapters(const std::string& folder, Program& program, const AdapterSpec& spec,
                   const std::optional<ForeignNames>& foreign, const std::string& base);

// UserError, naming the folder and the layer, where they are of another base, rank or scale, or of
// a kind that is not built in. Nothing is loaded then.
void load_adapters(const std::string& folder, Program& program,
                   const std::optional<ForeignNames>& foreign);

}  // namespace thimble
