// The list itself, for those who put together views of it.
#pragma once

#include <functional>

#include "recipe/recipe.h"

namespace thimble {

// The inputs of the model's family, where there is one.
struct ReadByModel {
  bool images = true;
  std::string_view usual_data = {};  // the data set that it is trained on where none is named
};

// Lists every field of the recipe; `list_own` those of its model, in their place.
void list_fields(Recipe& recipe, Fields& fields, const ReadByModel& reads,
                 const std::function<void(Fields&)>& list_own);

}  // namespace thimble
